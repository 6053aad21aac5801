// Runs kernels of a cubin in many blocks and prints, a line each, the name and what the
// threads of the first block computed. Arguments: the cubin, then names and numbers of threads.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

static const int blocks = 1024;

static void check(cudaError_t result, const char *what) {
    if (result != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
        exit(1);
    }
}

int main(int argc, char **argv) {
    cudaLibrary_t library;
    check(cudaLibraryLoadFromFile(&library, argv[1], nullptr, nullptr, 0, nullptr, nullptr, 0), argv[1]);
    for (int i = 2; i + 1 < argc; i += 2) {
        size_t threads = atoi(argv[i + 1]), size = blocks * threads * sizeof(unsigned);
        cudaKernel_t kernel;
        check(cudaLibraryGetKernel(&kernel, library, argv[i]), argv[i]);
        unsigned *out;
        check(cudaMalloc(&out, size), "cudaMalloc");
        void *args[] = {&out};
        check(cudaLaunchKernel((const void *)kernel, dim3(blocks), dim3(threads), args, 0, 0), argv[i]);
        std::vector<unsigned> result(blocks * threads);
        check(cudaMemcpy(result.data(), out, size, cudaMemcpyDeviceToHost), argv[i]);
        check(cudaFree(out), "cudaFree");
        printf("%s", argv[i]);
        for (size_t t = 0; t < threads; t++)
            printf(" %u", result[t]);
        for (size_t t = threads; t < result.size(); t++)
            if (result[t] != result[t % threads]) {
                printf(" but thread %zu of block %zu has %u", t % threads, t / threads, result[t]);
                break;
            }
        printf("\n");
    }
    return 0;
}
