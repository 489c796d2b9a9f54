/* A libnvidia-ml.so.1 with one GPU, which is as the five numbers in the file $NVML_STUB say: MIG (0 not supported, 1 on
   with one slice, 2 on with none), processes, MiB of each (-1: not told), MiB in use on the device, percent busy.
   A negative percentage: the GPU is lost. Each look at the processes adds a byte to $NVML_STUB.asked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, GPU_IS_LOST = 15 };
typedef struct { int mig, processes, process_mib, device_mib, busy; } State;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } Process;
static int gpu, slice; /* handles are their addresses */

static State look(void) {
    State s = {0, 0, 0, 0, -1};
    FILE *file = fopen(getenv("NVML_STUB"), "r");
    if (file) {
        if (fscanf(file, "%d %d %d %d %d", &s.mig, &s.processes, &s.process_mib, &s.device_mib, &s.busy) != 5) s.busy = -1;
        fclose(file);
    }
    return s;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { return code == GPU_IS_LOST ? "GPU is lost" : "not here"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) { *handle = &gpu; return index ? NOT_FOUND : SUCCESS; }
int nvmlDeviceGetName(void *handle, char *name, unsigned length) {
    snprintf(name, length, handle == &gpu ? "Stub GPU" : "Stub GPU MIG 1g.1gb");
    return SUCCESS;
}
int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned length) {
    snprintf(uuid, length, handle == &gpu ? "GPU-5708ab1e-0000-4000-8000-000000000001" : "MIG-5708ab1e-0000-4000-8000-000000000002");
    return SUCCESS;
}
int nvmlDeviceGetMinorNumber(void *handle, unsigned *minor) { *minor = 3; return handle == &gpu ? SUCCESS : NOT_FOUND; }
int nvmlDeviceGetGpuInstanceId(void *handle, unsigned *id) { *id = 1; return handle == &slice ? SUCCESS : NOT_FOUND; }
int nvmlDeviceGetComputeInstanceId(void *handle, unsigned *id) { *id = 0; return handle == &slice ? SUCCESS : NOT_FOUND; }
int nvmlDeviceGetMemoryInfo(void *handle, Memory *memory) {
    State s = look();
    memory->total = (handle == &gpu ? 8ULL : 1ULL) << 30;
    memory->used = (unsigned long long)s.device_mib << 20;
    memory->free = memory->total - memory->used;
    return s.busy < 0 ? GPU_IS_LOST : SUCCESS;
}
int nvmlDeviceGetUtilizationRates(void *handle, Utilization *rates) {
    State s = look();
    if (handle == &slice) return NOT_SUPPORTED;
    rates->gpu = (unsigned)s.busy;
    rates->memory = 0;
    return s.busy < 0 ? GPU_IS_LOST : SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, Process *processes) {
    State s = look();
    unsigned room = *count;
    char asked[4096];
    (void)handle;
    snprintf(asked, sizeof asked, "%s.asked", getenv("NVML_STUB"));
    FILE *file = fopen(asked, "a");
    if (file) { fputc('.', file); fclose(file); }
    if (s.busy < 0) return GPU_IS_LOST;
    *count = (unsigned)s.processes;
    if ((int)room < s.processes) return INSUFFICIENT_SIZE;
    for (int n = 0; n < s.processes; n++) {
        memset(&processes[n], 0, sizeof *processes);
        processes[n].pid = 1000u + (unsigned)n;
        processes[n].used = s.process_mib < 0 ? ~0ULL : (unsigned long long)s.process_mib << 20;
    }
    return SUCCESS;
}
int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) {
    State s = look();
    (void)handle;
    *current = *pending = s.mig > 0;
    return s.mig ? SUCCESS : NOT_SUPPORTED;
}
int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *count) { (void)handle; *count = 2; return SUCCESS; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned index, void **found) {
    (void)handle;
    *found = &slice;
    return index == 1 && look().mig == 1 ? SUCCESS : NOT_FOUND;
}
