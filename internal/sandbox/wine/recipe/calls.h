/* calls.h: each object of HNS has a record of the process that made it, and each call
 * of HNS is counted and delayed, if a file or folder asks for it:
 *
 *   C:\ProgramData\swdt-hns\makers\  PROGRAM-PID.txt, with a line "FUNCTION ID" for each
 *                                      object that this process has made, changed or deleted
 *
 *   C:\ProgramData\swdt-hns\delay.txt  two numbers: how many microseconds a call
 *                                      that reads takes, and one that writes
 *   C:\ProgramData\swdt-hns\calls\     a folder: each program that calls HNS keeps
 *                                      PROGRAM-PID.txt there, with a line "FUNCTION COUNT"
 *                                      for each function that it has called
 *
 * The last two are looked for at the first call of a process. The file of counts is mapped
 * into memory, so it is up to date at any time, and stays when the process is killed. */
#include <winternl.h>

#define CALLS_LINE 48 /* with its line break */
#define CALLS_LINES 64
#define CALLS_DIGITS 12

NTSTATUS NTAPI NtDelayExecution(BOOLEAN alertable, const LARGE_INTEGER *interval);

static struct {
    SRWLOCK lock;
    BOOL begun;
    char *lines; /* NULL: nothing is counted */
    long read_delay, write_delay; /* microseconds */
} calls = { SRWLOCK_INIT };

static void read_delays(void)
{
    TEXT_ text = { 0 };
    if (add_file(&text, HNS_FOLDER L"\\delay.txt") && text.bytes)
        sscanf(text.bytes, "%ld %ld", &calls.read_delay, &calls.write_delay);
    free(text.bytes);
}

/* The path of the file that this process has in a folder: PROGRAM-PID.txt. */
static void path_of_process(wchar_t *path, const wchar_t *folder)
{
    wchar_t program[MAX_PATH];
    const wchar_t *name;
    GetModuleFileNameW(NULL, program, MAX_PATH);
    name = wcsrchr(program, L'\\') ? wcsrchr(program, L'\\') + 1 : program;
    swprintf(path, HNS_PATH, HNS_FOLDER L"\\%ls\\%.*ls-%lu.txt", folder, (int)wcscspn(name, L"."), name, GetCurrentProcessId());
}

/* Records that this process has made, changed or deleted an object. */
static void record(const char *function, const wchar_t *id)
{
    wchar_t path[HNS_PATH];
    char line[128];
    DWORD written;
    HANDLE file;
    CreateDirectoryW(HNS_FOLDER, NULL);
    CreateDirectoryW(HNS_FOLDER L"\\makers", NULL);
    path_of_process(path, L"makers");
    file = CreateFileW(path, FILE_APPEND_DATA, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_ALWAYS, 0,
                       NULL);
    if (file == INVALID_HANDLE_VALUE)
        return;
    snprintf(line, sizeof line, "%s %ls\n", function, id);
    WriteFile(file, line, strlen(line), &written, NULL);
    CloseHandle(file);
}

static void map_counts(void)
{
    wchar_t path[HNS_PATH];
    HANDLE file, mapping;
    path_of_process(path, L"calls");
    file = CreateFileW(path, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                       OPEN_ALWAYS, 0, NULL);
    if (file == INVALID_HANDLE_VALUE) /* there is no folder */
        return;
    mapping = CreateFileMappingW(file, NULL, PAGE_READWRITE, 0, CALLS_LINE * CALLS_LINES, NULL);
    if (mapping) {
        calls.lines = MapViewOfFile(mapping, FILE_MAP_WRITE, 0, 0, 0);
        CloseHandle(mapping);
    }
    CloseHandle(file);
}

/* Adds one to the line of a function. Only digits change, so a reader never sees half a line. */
static void count_call(const char *function)
{
    size_t length = strlen(function);
    int i;
    for (i = 0; i < CALLS_LINES; i++) {
        char *line = calls.lines + i * CALLS_LINE;
        if (!*line) {
            char fresh[CALLS_LINE + 1];
            snprintf(fresh, sizeof fresh, "%-*s%0*d\n", CALLS_LINE - CALLS_DIGITS - 1, function, CALLS_DIGITS, 1);
            memcpy(line, fresh, CALLS_LINE);
            return;
        }
        if (strncmp(line, function, length) == 0 && line[length] == ' ') {
            char *digit = line + CALLS_LINE - 2;
            while (*digit == '9')
                *digit-- = '0';
            ++*digit;
            return;
        }
    }
}

static void called(const char *function, BOOL writes)
{
    LARGE_INTEGER interval;
    AcquireSRWLockExclusive(&calls.lock);
    if (!calls.begun) {
        read_delays();
        map_counts();
        calls.begun = TRUE;
    }
    if (calls.lines)
        count_call(function);
    ReleaseSRWLockExclusive(&calls.lock);
    interval.QuadPart = -10 * (LONGLONG)(writes ? calls.write_delay : calls.read_delay);
    if (interval.QuadPart)
        NtDelayExecution(FALSE, &interval);
}
