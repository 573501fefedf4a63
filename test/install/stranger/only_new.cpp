// Names nothing of malloc's but operator new and delete.
static int *volatile kept;

int main() {
  kept = new int;
  delete kept;
  return 0;
}
