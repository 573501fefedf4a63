// JSON, maps, buffers and compression in the main thread and in workers that hand their buffers over.
'use strict';

const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto');
const zlib = require('zlib');

function work(seed) {
  const map = new Map();
  for (let i = 0; i < 30000; i++) {
    map.set(`key ${(i * 7919 + seed) % 5003}`, { i, text: 'x'.repeat(i % 100), list: [i, i + 1] });
  }
  const text = JSON.stringify([...map.entries()].sort((a, b) => (a[0] < b[0] ? -1 : 1)));
  const packed = zlib.gzipSync(text);
  const parsed = JSON.parse(zlib.gunzipSync(packed).toString());
  const buffers = Array.from({ length: 500 }, (_, i) => Buffer.alloc(i * 37, i & 255));
  const all = Buffer.concat([Buffer.from(JSON.stringify(parsed)), ...buffers]);
  return crypto.createHash('sha256').update(all).digest();
}

function started(seed) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: seed });
    worker.on('message', (digest) => resolve(Buffer.from(digest).toString('hex')));
    worker.on('error', reject);
  });
}

if (isMainThread) {
  Promise.all([1, 2, 3, 4].map(started)).then((digests) => {
    console.log([work(0).toString('hex'), ...digests].join('\n'));
  });
} else {
  const digest = new Uint8Array(work(workerData));
  parentPort.postMessage(digest, [digest.buffer]);
}
