/* A library with the symbols of an old NVIDIA driver: one GPU that works, one
 * that has fallen off its bus, and no call that came later. */
#include <stdio.h>
#include <string.h>

typedef struct { unsigned index; } device;
static device devices[2] = {{0}, {1}};

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, GPU_IS_LOST = 15 };
static int open_count = 0;

int nvmlInit_v2(void) { open_count++; return SUCCESS; }
int nvmlShutdown(void) { if (!open_count) return UNINITIALIZED; open_count--; return SUCCESS; }
const char *nvmlErrorString(int code) { return code == UNINITIALIZED ? "Uninitialized" : "Other"; }

static int text(char *to, unsigned length, const char *from) {
	if (!open_count) return UNINITIALIZED;
	snprintf(to, length, "%s", from);
	return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *version, unsigned length) { return text(version, length, "418.226.00"); }

int nvmlDeviceGetCount_v2(unsigned *count) {
	*count = 2;
	return open_count ? SUCCESS : UNINITIALIZED;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device **out) {
	if (index > 1) return INVALID_ARGUMENT;
	*out = &devices[index];
	return index == 1 ? GPU_IS_LOST : SUCCESS;
}

int nvmlDeviceGetUUID(device *d, char *uuid, unsigned length) {
	return text(uuid, length, "GPU-8f6d9b2c-1111-2222-3333-444455556666");
}

int nvmlDeviceGetName(device *d, char *name, unsigned length) { return text(name, length, "Tesla V100-SXM2-16GB"); }
int nvmlDeviceGetMinorNumber(device *d, unsigned *minor) { return NOT_SUPPORTED; }

int nvmlDeviceGetMemoryInfo(device *d, unsigned long long *total_free_used) {
	total_free_used[0] = (16160ULL << 20) + 4096;
	total_free_used[2] = 160ULL << 20;
	return SUCCESS;
}

struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };

int nvmlDeviceGetPciInfo_v3(device *d, struct pci *info) {
	memset(info, 0, sizeof *info);
	return text(info->bus_id, sizeof info->bus_id, "00000000:3B:00.0");
}
