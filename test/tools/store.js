// store: what store.py is, in Buffers. Their memory is malloc's; the heap of JavaScript is not, so
// that of process.memoryUsage() only `arrayBuffers` says what malloc gave.
"use strict";
const net = require("node:net");
const readline = require("node:readline");

const PLACES = 5000;
// Such a block fills its size class, and is large beside Node's records of it.
const SIZES = [12288, 16384, 20480, 28672];

const blocks = [];
let number = 0;

function put(count) {
  for (let left = count; left > 0; left--) {
    const size = SIZES[(number + Math.floor(number / PLACES)) % SIZES.length];
    blocks[number % PLACES] = Buffer.alloc(size, 1);
    number++;
  }
}

net
  .createServer((client) => {
    readline.createInterface({ input: client }).on("line", (line) => {
      if (line === "bytes") {
        client.write(`${process.memoryUsage().arrayBuffers}\n`);
      } else {
        put(Number(line));
        client.write(`${line}\n`);
      }
    });
  })
  .listen(process.argv[2]);
