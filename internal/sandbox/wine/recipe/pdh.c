/* pdh.dll: Wine's knows no counter that a kubelet asks for, and a kubelet without
 * performance counters does not start. Here every counter exists: the processor's
 * and the memory's are this machine's, those with an instance * (network adapters)
 * are of one instance and 0, and so is all else. The functions and structures are those
 * of pdh.h as kubelet declares them (kubernetes/kubernetes, pkg/kubelet/winstats, and its
 * vendored github.com/JeffAshton/win_pdh). */
#include <windows.h>

typedef LONG STATUS;
#define MORE_DATA ((STATUS)0x800007D2)
#define FORMAT_LONG 0x100
#define FORMAT_DOUBLE 0x200

typedef struct {
    DWORD status;
    union { LONG whole; double real; LONGLONG large; } value;
} VALUE;

typedef struct {
    wchar_t *name;
    VALUE value;
} ITEM;

typedef struct {
    enum { ZERO, PROCESSOR_PERCENT, MEMORY_USED } kind;
    ULONGLONG idle, total; /* at the last look at the processor */
} COUNTER;

static ULONGLONG number(FILETIME time)
{
    return (ULONGLONG)time.dwHighDateTime << 32 | time.dwLowDateTime;
}

static double processor_percent(COUNTER *counter)
{
    FILETIME idle, kernel, user; /* kernel includes idle */
    ULONGLONG passed, idled;
    if (!GetSystemTimes(&idle, &kernel, &user))
        return 0;
    passed = number(kernel) + number(user) - counter->total;
    idled = number(idle) - counter->idle;
    counter->total += passed;
    counter->idle += idled;
    return passed > idled ? 100.0 * (double)(passed - idled) / (double)passed : 0;
}

static double memory_used(void)
{
    MEMORYSTATUSEX memory = { .dwLength = sizeof memory };
    return GlobalMemoryStatusEx(&memory) ? (double)(memory.ullTotalPhys - memory.ullAvailPhys) : 0;
}

static VALUE read_counter(COUNTER *counter, DWORD format)
{
    VALUE value = { 0 };
    double real = 0;
    switch (counter->kind) {
    case PROCESSOR_PERCENT: real = processor_percent(counter); break;
    case MEMORY_USED: real = memory_used(); break;
    case ZERO: break;
    }
    if (format & FORMAT_DOUBLE)
        value.value.real = real;
    else if (format & FORMAT_LONG)
        value.value.whole = (LONG)real;
    else
        value.value.large = (LONGLONG)real;
    return value;
}

__declspec(dllexport) STATUS WINAPI PdhOpenQuery(LPCWSTR source, DWORD_PTR user, HANDLE *query)
{
    *query = HeapAlloc(GetProcessHeap(), 0, 1);
    return ERROR_SUCCESS;
}

__declspec(dllexport) STATUS WINAPI PdhOpenQueryW(LPCWSTR source, DWORD_PTR user, HANDLE *query)
{
    return PdhOpenQuery(source, user, query);
}

/* A counter is never freed: kubelet makes its few and keeps them. */
__declspec(dllexport) STATUS WINAPI PdhAddCounterW(HANDLE query, LPCWSTR path, DWORD_PTR user, HANDLE *handle)
{
    COUNTER *counter = HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, sizeof *counter);
    if (lstrcmpiW(path, L"\\Processor(_Total)\\% Processor Time") == 0)
        counter->kind = PROCESSOR_PERCENT;
    else if (lstrcmpiW(path, L"\\Memory\\Committed Bytes") == 0 || lstrcmpiW(path, L"\\Process(_Total)\\Working Set - Private") == 0)
        counter->kind = MEMORY_USED;
    *handle = counter;
    return ERROR_SUCCESS;
}

__declspec(dllexport) STATUS WINAPI PdhAddEnglishCounterW(HANDLE query, LPCWSTR path, DWORD_PTR user, HANDLE *handle)
{
    return PdhAddCounterW(query, path, user, handle);
}

__declspec(dllexport) STATUS WINAPI PdhValidatePathW(LPCWSTR path) { return ERROR_SUCCESS; }

__declspec(dllexport) STATUS WINAPI PdhCollectQueryData(HANDLE query) { return ERROR_SUCCESS; }

__declspec(dllexport) STATUS WINAPI PdhRemoveCounter(HANDLE counter) { return ERROR_SUCCESS; }

__declspec(dllexport) STATUS WINAPI PdhGetFormattedCounterValue(HANDLE counter, DWORD format, DWORD *type, VALUE *value)
{
    *value = read_counter(counter, format);
    return ERROR_SUCCESS;
}

__declspec(dllexport) STATUS WINAPI PdhGetFormattedCounterArrayW(HANDLE counter, DWORD format, DWORD *size, DWORD *count, ITEM *items)
{
    static wchar_t name[] = L"_Total";
    DWORD have = *size;
    *size = sizeof *items;
    *count = 1;
    if (have < sizeof *items || !items)
        return MORE_DATA;
    items->name = name;
    items->value = read_counter(counter, format);
    return ERROR_SUCCESS;
}

__declspec(dllexport) STATUS WINAPI PdhCloseQuery(HANDLE query)
{
    HeapFree(GetProcessHeap(), 0, query);
    return ERROR_SUCCESS;
}
