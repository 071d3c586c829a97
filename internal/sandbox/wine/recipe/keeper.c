/* keeper.exe keeps a Wine prefix usable as a machine, in two ways.
 *
 * As `keeper` it runs for as long as its stdin is open: Wine ends a prefix's
 * services a few seconds after its last ordinary process, and this is one.
 *
 * As `keeper --boot PIPE...` it is started by every boot, before the services are
 * (node.reg, RunServices), is no ordinary process, and ends with the services:
 *
 * - Under Wine 8 the first instance of a go-winio named pipe accepts a client
 *   that its server never sees. For each of the pipes this program is that client,
 *   whenever a server appears, and for as long as that server lives.
 * - It counts the boot.
 * - go-winio before 0.6 makes its pipes below \??\pipe, case-sensitively, and
 *   Wine has only \??\PIPE: this makes the other. */
#include <windows.h>
#include <winternl.h>

/* What Wine's own services.exe becomes, so that it does not count as a process
 * that services are there for. Gives an event: the last that counts has ended. */
#define ProcessWineMakeProcessSystem 1000
NTSTATUS NTAPI NtSetInformationProcess(HANDLE, PROCESSINFOCLASS, void *, ULONG);

NTSTATUS NTAPI NtCreateSymbolicLinkObject(HANDLE *, ACCESS_MASK, OBJECT_ATTRIBUTES *, UNICODE_STRING *);

/* How long after a server's start its first client may be lost to it. Each look is a request to wineserver. */
#define INTERVAL_MS 5

static DWORD WINAPI hold(void *argument)
{
    const wchar_t *pipe = argument;
    for (;;) {
        HANDLE handle = CreateFileW(pipe, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL);
        if (handle != INVALID_HANDLE_VALUE) {
            char buffer[64];
            DWORD count;
            while (ReadFile(handle, buffer, sizeof buffer, &count, NULL)) /* until the server ends */
                ;
            CloseHandle(handle);
        }
        Sleep(INTERVAL_MS);
    }
    return 0;
}

/* The link lives as long as its handle, which is never closed. */
static void link_lower_case_pipe(void)
{
    UNICODE_STRING name, target;
    OBJECT_ATTRIBUTES attributes;
    HANDLE handle;
    RtlInitUnicodeString(&name, L"\\??\\pipe");
    RtlInitUnicodeString(&target, L"\\Device\\NamedPipe");
    InitializeObjectAttributes(&attributes, &name, 0, NULL, NULL);
    NtCreateSymbolicLinkObject(&handle, GENERIC_ALL, &attributes, &target);
}

/* Windows counts its boots here, and kubelet reports the number. */
static void count_boot(void)
{
    const wchar_t *key = L"SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Memory Management\\PrefetchParameters";
    DWORD boots = 0, size = sizeof boots;
    RegGetValueW(HKEY_LOCAL_MACHINE, key, L"BootId", RRF_RT_REG_DWORD, NULL, &boots, &size);
    boots++;
    RegSetKeyValueW(HKEY_LOCAL_MACHINE, key, L"BootId", REG_DWORD, &boots, sizeof boots);
}

static int boot(int count, wchar_t **pipes)
{
    HANDLE end = NULL;
    count_boot();
    if (NtSetInformationProcess(GetCurrentProcess(), ProcessWineMakeProcessSystem, &end, sizeof end) || !end)
        return 1;
    link_lower_case_pipe();
    for (int i = 0; i < count; i++)
        CreateThread(NULL, 0, hold, pipes[i], 0, NULL);
    WaitForSingleObject(end, INFINITE);
    return 0;
}

int wmain(int argc, wchar_t **argv)
{
    char buffer[64];
    DWORD count;
    if (argc > 1 && lstrcmpW(argv[1], L"--boot") == 0)
        return boot(argc - 2, argv + 2);
    WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), "keeping\n", 8, &count, NULL);
    while (ReadFile(GetStdHandle(STD_INPUT_HANDLE), buffer, sizeof buffer, &count, NULL) && count > 0)
        ;
    return 0;
}
