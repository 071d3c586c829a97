/* What the DLLs of HNS and HCS answer with: the files of C:\ProgramData\swdt-hns, where
 * who uses the prefix may plant what a node has, one object a file:
 *
 *   networks\ID.json endpoints\ID.json namespaces\ID.json loadbalancers\ID.json
 *   endpointstats\ID.json globals\version.json systems\ID.json
 *
 * There is nothing there at first. Programs that make objects through
 * computenetwork.dll make such files too, so the objects outlive the programs. The
 * names of an object's fields are read by clients without regard to case, and
 * unknown ones passed over, so that one file can have those of the old interface
 * (vmcompute.dll) and of the new one (computenetwork.dll). */
#include <windows.h>
#include <objbase.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define HNS_FOLDER L"C:\\ProgramData\\swdt-hns"
#define HNS_PATH 512
/* learn.microsoft.com/virtualization/api/hcn/Reference/hcnhresult, and winerror.h. */
#define HNS_NETWORK_NOT_FOUND ((HRESULT)0x803B0001)
#define HNS_ENDPOINT_NOT_FOUND ((HRESULT)0x803B0002)
#define HNS_POLICY_NOT_FOUND ((HRESULT)0x803B0008)
#define HNS_NETCOMPARTMENT_NOT_FOUND ((HRESULT)0x803B0027)
#define HNS_NOT_SUPPORTED ((HRESULT)0x80070032) /* ERROR_NOT_SUPPORTED */

/* A text that grows. */
typedef struct {
    char *bytes;
    size_t length;
} TEXT_;

static void add(TEXT_ *text, const char *more, size_t length)
{
    text->bytes = realloc(text->bytes, text->length + length + 1);
    memcpy(text->bytes + text->length, more, length);
    text->length += length;
    text->bytes[text->length] = 0;
}

static void add_string(TEXT_ *text, const char *more) { add(text, more, strlen(more)); }

static BOOL add_file(TEXT_ *text, const wchar_t *path)
{
    char buffer[4096];
    DWORD count;
    HANDLE file = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING, 0, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return FALSE;
    while (ReadFile(file, buffer, sizeof buffer, &count, NULL) && count > 0)
        add(text, buffer, count);
    CloseHandle(file);
    return TRUE;
}

static void add_wide(TEXT_ *text, const wchar_t *more)
{
    int length = WideCharToMultiByte(CP_UTF8, 0, more, -1, NULL, 0, NULL, NULL);
    char *narrow = malloc(length);
    WideCharToMultiByte(CP_UTF8, 0, more, -1, narrow, length, NULL, NULL);
    add(text, narrow, length - 1);
    free(narrow);
}

static void path_of(wchar_t *path, const wchar_t *kind, const wchar_t *id)
{
    swprintf(path, HNS_PATH, HNS_FOLDER L"\\%ls\\%ls.json", kind, id);
}

static BOOL add_object(TEXT_ *text, const wchar_t *kind, const wchar_t *id)
{
    wchar_t path[HNS_PATH];
    if (!*id || wcschr(id, L'\\') || wcsstr(id, L".."))
        return FALSE;
    path_of(path, kind, id);
    return add_file(text, path);
}

/* Whether a query asks for the object with an ID. */
typedef BOOL WANTED(const wchar_t *kind, const wchar_t *id, const wchar_t *query);

/* The objects of a kind as a JSON list: themselves, or their IDs. Without wanted, it has all. */
static void add_list(TEXT_ *text, const wchar_t *kind, BOOL only_ids, WANTED *wanted, const wchar_t *query)
{
    wchar_t path[HNS_PATH], id[HNS_PATH];
    WIN32_FIND_DATAW found;
    HANDLE search;
    int number = 0;
    add_string(text, "[");
    path_of(path, kind, L"*");
    search = FindFirstFileW(path, &found);
    if (search != INVALID_HANDLE_VALUE) {
        do {
            swprintf(id, HNS_PATH, L"%.*ls", (int)(wcslen(found.cFileName) - wcslen(L".json")), found.cFileName);
            if (wanted && !wanted(kind, id, query))
                continue;
            if (number++ > 0)
                add_string(text, ",");
            if (only_ids) {
                add_string(text, "\"");
                add_wide(text, id);
                add_string(text, "\"");
            } else {
                add_object(text, kind, id);
            }
        } while (FindNextFileW(search, &found));
        FindClose(search);
    }
    add_string(text, "]");
}

/* The text for a caller, who frees it with CoTaskMemFree. */
static wchar_t *give(TEXT_ *text)
{
    int length = MultiByteToWideChar(CP_UTF8, 0, text->bytes, -1, NULL, 0);
    wchar_t *wide = CoTaskMemAlloc(length * sizeof *wide);
    if (wide)
        MultiByteToWideChar(CP_UTF8, 0, text->bytes, -1, wide, length);
    free(text->bytes);
    return wide;
}
