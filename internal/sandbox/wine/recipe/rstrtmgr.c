/* rstrtmgr.dll: Windows' Restart Manager, as far as it names the processes that have
 * a file open. Wine's own names none. The functions, the structures and their limits
 * are those of RestartManager.h:
 * https://learn.microsoft.com/en-us/windows/win32/api/restartmanager/. RM_PROCESS_INFO has
 * as strAppName a "user-friendly name" of a program and the long name of a service; here
 * it is the file's name. */
#include <windows.h>
#include <winternl.h>
#include <restartmanager.h>
#include <stdlib.h>
#include <string.h>

#define SYSTEM_HANDLES 16 /* SystemHandleInformation */
#define MOST_BYTES (16 << 20)

#pragma pack(push, 8)
typedef struct {
    ULONG pid;
    BYTE type, flags;
    USHORT handle;
    void *object;
    ULONG access;
} HANDLE_ENTRY;
typedef struct {
    ULONG count;
    HANDLE_ENTRY entries[1];
} HANDLE_LIST;
#pragma pack(pop)

/* One session is enough for an agent that asks about one file at a time. */
static wchar_t asked[MAX_PATH * 4];

#define EXPORT __declspec(dllexport) DWORD WINAPI

EXPORT RmStartSession(DWORD *session, DWORD flags, WCHAR *key)
{
    *session = 1;
    *key = 0;
    return ERROR_SUCCESS;
}

EXPORT RmEndSession(DWORD session) { return ERROR_SUCCESS; }

EXPORT RmRegisterResources(DWORD session, UINT files, const WCHAR **names, UINT applications, RM_UNIQUE_PROCESS *processes,
                           UINT services, const WCHAR **service_names)
{
    if (files != 1 || applications || services || wcslen(names[0]) >= sizeof(asked) / sizeof(*asked))
        return ERROR_NOT_SUPPORTED;
    wcscpy(asked, names[0]);
    return ERROR_SUCCESS;
}

static BOOL same_file(HANDLE file, const BY_HANDLE_FILE_INFORMATION *wanted)
{
    BY_HANDLE_FILE_INFORMATION is;
    return GetFileType(file) == FILE_TYPE_DISK && GetFileInformationByHandle(file, &is) &&
           is.dwVolumeSerialNumber == wanted->dwVolumeSerialNumber && is.nFileIndexHigh == wanted->nFileIndexHigh &&
           is.nFileIndexLow == wanted->nFileIndexLow;
}

static HANDLE_LIST *all_handles(void)
{
    ULONG size = 1 << 16, needed;
    for (; size <= MOST_BYTES; size *= 2) {
        HANDLE_LIST *list = malloc(size);
        if (!list || NtQuerySystemInformation(SYSTEM_HANDLES, list, size, &needed) == 0)
            return list;
        free(list);
    }
    return NULL;
}

static void describe(HANDLE process, DWORD pid, RM_PROCESS_INFO *info)
{
    WCHAR image[MAX_PATH * 4];
    DWORD length = sizeof(image) / sizeof(*image);
    FILETIME exited, kernel, user;
    memset(info, 0, sizeof(*info));
    info->Process.dwProcessId = pid;
    GetProcessTimes(process, &info->Process.ProcessStartTime, &exited, &kernel, &user);
    if (QueryFullProcessImageNameW(process, 0, image, &length)) {
        WCHAR *name = wcsrchr(image, L'\\');
        wcsncpy(info->strAppName, name ? name + 1 : image, CCH_RM_MAX_APP_NAME);
    }
}

EXPORT RmGetList(DWORD session, UINT *needed, UINT *room, RM_PROCESS_INFO *list, DWORD *reasons)
{
    BY_HANDLE_FILE_INFORMATION wanted;
    HANDLE_LIST *handles;
    ULONG i, last = 0;
    UINT found = 0;
    HANDLE file = CreateFileW(asked, FILE_READ_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                              OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return GetLastError();
    if (!GetFileInformationByHandle(file, &wanted) || !(handles = all_handles())) {
        CloseHandle(file);
        return ERROR_OUTOFMEMORY;
    }
    for (i = 0; i < handles->count; i++) {
        const HANDLE_ENTRY *e = &handles->entries[i];
        HANDLE process, copy;
        if (e->pid == GetCurrentProcessId() || e->pid == last ||
            !(process = OpenProcess(PROCESS_DUP_HANDLE | PROCESS_QUERY_INFORMATION, FALSE, e->pid)))
            continue;
        if (DuplicateHandle(process, (HANDLE)(ULONG_PTR)e->handle, GetCurrentProcess(), &copy, 0, FALSE,
                            DUPLICATE_SAME_ACCESS)) {
            if (same_file(copy, &wanted)) {
                last = e->pid; /* the handles of one process follow each other */
                if (found < *room)
                    describe(process, e->pid, &list[found]);
                found++;
            }
            CloseHandle(copy);
        }
        CloseHandle(process);
    }
    free(handles);
    CloseHandle(file);
    *needed = found;
    *reasons = 0;
    if (found > *room)
        return ERROR_MORE_DATA;
    *room = found;
    return ERROR_SUCCESS;
}
