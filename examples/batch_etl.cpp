// A pipeline gives each batch an epoch that drains: rows are ordinary objects, nearly all are gone
// when the batch is, and the few that somebody still holds stay valid until they are dropped.
#include <map>
#include <memory>
#include <string>
#include <tslab.hpp>
#include <vector>

#include "expect.h"

namespace {

constexpr int batches = 5, rows_per_batch = 10000, bad_every = 1000;

struct row {
  std::string country, amount;
};

using row_ptr = std::unique_ptr<row>;

std::vector<row_ptr> extract(int batch) {
  static const char *const countries[] = {"Norway", "Peru", "Kenya"};
  std::vector<row_ptr> rows;
  for (int i = 0; i < rows_per_batch; i++) {
    bool is_bad = i % bad_every == 0;
    std::string amount = is_bad ? "not a number, in row " + std::to_string(i) : std::to_string(i);
    rows.push_back(std::make_unique<row>(row{countries[(i + batch) % 3], amount}));
  }
  return rows;
}

struct warehouse {
  std::map<std::string, long> totals;
  std::vector<row_ptr> rejected;
};

// Grows what outlives the batch.
void load(warehouse &to, row_ptr &from) {
  tslab::scope keep{tslab::default_epoch};
  if (from->amount.front() == 'n') {
    to.rejected.push_back(std::move(from));
  } else {
    to.totals[std::string(from->country)] += std::stol(from->amount);
  }
}

tslab_survivors run(int batch, warehouse &to) {
  tslab::epoch epoch{"batch"};
  {
    tslab::scope in{epoch};
    auto rows = extract(batch);
    for (auto &each : rows) load(to, each);
  }
  return epoch.close();
}

int epochs_alive() {
  int count = 0;
  tslab::for_each_epoch([&](tslab_epoch) { count++; });
  return count;
}

}  // namespace

int main() {
  warehouse to;
  for (int batch = 0; batch < batches; batch++) {
    tslab_survivors left = run(batch, to);
    // A rejected row is two objects: itself and its amount. Its country fits inside.
    EXPECT(left.objects == 2 * rows_per_batch / bad_every);
    std::printf("batch %d: %zu objects on %zu pages outlived it\n", batch, left.objects,
                left.pages);
  }

  long total = 0;
  for (const auto &[country, amount] : to.totals) {
    std::printf("%-6s %ld\n", country.c_str(), amount);
    total += amount;
  }
  long all_rows = long{rows_per_batch} * (rows_per_batch - 1) / 2, bad_rows = 45 * bad_every;
  EXPECT(total == batches * (all_rows - bad_rows));

  EXPECT(epochs_alive() == batches && to.rejected.back()->amount == "not a number, in row 9000");
  to.rejected.clear();
  EXPECT(epochs_alive() == 0);
  std::printf("the rejected rows were dropped, and the last batch is over\n");
}
