// snippets: what the code in the documents takes for granted.
#pragma once

#include <stdio.h>
#include <string.h>
#include <tslab.h>

struct cache;
struct connection;
struct query;

#if defined(__cplusplus)
#include <functional>
#include <memory_resource>
#include <string>
#include <tslab.hpp>
#include <vector>

struct connection {};
struct image {};
struct world {};
struct entity {
  int depth;
};
struct history {
  std::vector<std::string> lines;
};
struct pool {
  void run(std::function<void()> work);
  void wait();
};

void handle(connection &);
void shrink(image &);
std::vector<const entity *> cull(const world &);
void draw(const std::vector<const entity *> &, const std::pmr::vector<int> &);
#else
struct session {
  int user;
};
struct transaction {
  tslab_epoch epoch;
  tslab_deferred undo;
};

extern struct connection *connection;
void handle(struct connection *connection);
void roll_back(void *transaction);
void cache_shrink(struct cache *cache, size_t bytes);
void cache_insert(struct cache *cache, struct query *copy);
struct query *query_copy(const struct query *query);
#endif
