/* computenetwork.dll: the new interface of Windows' Host Network Service, which
 * says what networks, endpoints, namespaces and load balancers there are. It
 * reads, see hns.h, and makes namespaces alone: a container runtime makes one for
 * each pod. */
#include "hns.h"

/* What a handle of an open object is. */
typedef struct {
    const wchar_t *kind;
    wchar_t id[40];
} OBJECT;

static HRESULT enumerate(const wchar_t *kind, wchar_t **list, wchar_t **error)
{
    TEXT_ text = { 0 };
    if (error)
        *error = NULL;
    add_list(&text, kind, TRUE);
    *list = give(&text);
    return S_OK;
}

static HRESULT open(const wchar_t *kind, const GUID *id, void **handle, wchar_t **error)
{
    OBJECT *object = calloc(1, sizeof *object);
    TEXT_ text = { 0 };
    wchar_t braced[40];
    BOOL found;
    if (error)
        *error = NULL;
    StringFromGUID2(id, braced, 40);
    wcsncpy(object->id, braced + 1, 36);
    object->kind = kind;
    found = add_object(&text, kind, object->id);
    free(text.bytes);
    if (!found) {
        free(object);
        return HNS_NOT_FOUND;
    }
    *handle = object;
    return S_OK;
}

static HRESULT query(OBJECT *object, wchar_t **properties, wchar_t **error)
{
    TEXT_ text = { 0 };
    if (error)
        *error = NULL;
    if (!add_object(&text, object->kind, object->id))
        return HNS_NOT_FOUND;
    *properties = give(&text);
    return S_OK;
}

static void namespace_path(wchar_t *path, const GUID *id)
{
    wchar_t braced[40];
    StringFromGUID2(id, braced, 40);
    swprintf(path, HNS_PATH, HNS_FOLDER L"\\namespaces\\%.36ls.json", braced + 1);
}

static BOOL write_namespace(const GUID *id)
{
    wchar_t path[HNS_PATH];
    char json[256];
    DWORD written;
    HANDLE file;
    BOOL done;
    CreateDirectoryW(HNS_FOLDER, NULL);
    CreateDirectoryW(HNS_FOLDER L"\\namespaces", NULL);
    namespace_path(path, id);
    snprintf(json, sizeof json, "{\"ID\":\"%.36ls\",\"NamespaceId\":1,\"Type\":\"Host\",\"SchemaVersion\":{\"Major\":2,\"Minor\":0}}",
             wcsrchr(path, L'\\') + 1);
    file = CreateFileW(path, GENERIC_WRITE, 0, NULL, CREATE_NEW, 0, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return FALSE;
    done = WriteFile(file, json, strlen(json), &written, NULL);
    CloseHandle(file);
    return done;
}

#define EXPORT __declspec(dllexport) HRESULT WINAPI
#define READ(name, names, folder) \
    EXPORT HcnEnumerate##names(const wchar_t *what, wchar_t **list, wchar_t **error) { return enumerate(folder, list, error); } \
    EXPORT HcnOpen##name(const GUID *id, void **handle, wchar_t **error) { return open(folder, id, handle, error); } \
    EXPORT HcnQuery##name##Properties(void *handle, const wchar_t *what, wchar_t **properties, wchar_t **error) \
    { return query(handle, properties, error); } \
    EXPORT HcnModify##name(void *handle, const wchar_t *settings, wchar_t **error) { return HNS_NOT_SUPPORTED; } \
    EXPORT HcnClose##name(void *handle) { free(handle); return S_OK; }
#define KEEP(name) \
    EXPORT HcnDelete##name(const GUID *id, wchar_t **error) { return HNS_NOT_SUPPORTED; }

READ(Network, Networks, L"networks")
KEEP(Network)
READ(Endpoint, Endpoints, L"endpoints")
KEEP(Endpoint)
READ(LoadBalancer, LoadBalancers, L"loadbalancers")
KEEP(LoadBalancer)
READ(Namespace, Namespaces, L"namespaces")

/* Who has no ID for it gets one. */
EXPORT HcnCreateNamespace(const GUID *wanted, const wchar_t *settings, void **handle, wchar_t **error)
{
    static const GUID none;
    GUID id = *wanted;
    if (error)
        *error = NULL;
    if (IsEqualGUID(&id, &none) && FAILED(CoCreateGuid(&id)))
        return E_FAIL;
    if (!write_namespace(&id))
        return E_FAIL;
    return open(L"namespaces", &id, handle, error);
}

EXPORT HcnDeleteNamespace(const GUID *id, wchar_t **error)
{
    wchar_t path[HNS_PATH];
    if (error)
        *error = NULL;
    namespace_path(path, id);
    return DeleteFileW(path) ? S_OK : HNS_NOT_FOUND;
}
