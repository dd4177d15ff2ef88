// Functions that call themselves, through tables, and what the device library stands for.
#include <cassert>
#include <cstdio>

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

struct Node {
  int value;
  Node *next;
};
__device__ __noinline__ void build(Node **head, int n) {
  if (n == 0) return;
  Node *node = (Node *)malloc(sizeof(Node));
  node->value = n;
  node->next = *head;
  *head = node;
  build(head, n - 1);
}

typedef int (*Function)(int);
__device__ int successor(int x) { return x + 1; }
__device__ int square(int x) { return x * x; }
__device__ Function table[2] = {successor, square};

extern "C" __global__ void functions(int *out, float f) {
  int t = threadIdx.x;
  Node *head = nullptr;
  build(&head, t % 5);
  int sum = 0;
  while (head) {
    sum += head->value;
    Node *next = head->next;
    free(head);
    head = next;
  }
  assert(sum >= 0);
  if (t < 3)
    printf("t=%d f=%.3f %s %c %u %lld %5.2f%%\n", t, f, t == 1 ? "one" : "other", 'a' + t,
           4000000000u, -1234567890123LL, 99.5);
  out[t] = fibonacci(t % 10) + 1000 * ackermann(2, t % 4) + 100000 * table[t & 1](t) +
           10000000 * sum;
}

extern "C" __global__ void failing(int *out) { assert(out[threadIdx.x] == 0 && "zero"); }
