// A web server: each request fills a buffer, compresses it on the pool's threads, and leaves one in
// a cache. Buffers and zlib allocate by malloc; the heap of JavaScript does not.
"use strict";
const http = require("node:http");
const zlib = require("node:zlib");

const KEPT = 500;
const cache = [];
let number = 0;

const server = http.createServer((request, response) => {
  number += 1;
  const bytes = 4096 + ((number * 7919) % 60000);
  const page = Buffer.alloc(bytes, `row ${number} `);
  zlib.gzip(page, { level: 1 }, (error, packed) => {
    cache[number % KEPT] = page;
    response.writeHead(error ? 500 : 200, { "Content-Encoding": "gzip" });
    response.end(packed);
  });
});

server.listen(7405, "127.0.0.1");
