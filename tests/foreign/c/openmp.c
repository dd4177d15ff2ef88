// OpenMP regions that gcc compiles for nvptx.
#pragma omp declare target
static const float weights[4] = {0.25f, 0.5f, 1.f, 2.f};
__attribute__((noinline)) static float weigh(float x, int i) { return x * weights[i & 3] + i; }
typedef float (*Function)(float, int);
#pragma omp end declare target

void saxpy(float a, const float *x, float *y, int n) {
#pragma omp target teams distribute parallel for map(to : x[:n]) map(tofrom : y[:n])
  for (int i = 0; i < n; i++) y[i] += a * weigh(x[i], i);
}

long total(const int *x, int n) {
  long sum = 0;
#pragma omp target teams distribute parallel for simd reduction(+ : sum) map(to : x[:n])
  for (int i = 0; i < n; i++) sum += x[i] > 0 ? x[i] : -3 * x[i] / 7;
  return sum;
}

void product(const double *a, const double *b, double *c, int n) {
#pragma omp target teams distribute parallel for collapse(2) map(to : a[:n * n], b[:n * n]) map(from : c[:n * n])
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double s = 0;
      for (int k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j];
      c[i * n + j] = s;
    }
}

int main(void) {
  float x[8] = {0}, y[8] = {0};
  double d[4] = {0};
  int z[8] = {0};
  saxpy(2.f, x, y, 8);
  product(d, d, d, 2);
  return (int)total(z, 8);
}
