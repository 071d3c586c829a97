/* computenetwork.dll: the new interface of Windows' Host Network Service, which
 * says what networks, endpoints, namespaces and load balancers there are, and
 * makes them: the pod network's program makes a network, its CNI plug-in an endpoint for
 * each pod, a container runtime a namespace for each pod, and kube-proxy
 * makes endpoints and load balancers. What is made has the settings that it was
 * made with, and no traffic flows through it. See hns.h for the files in which
 * all programs on the node find it, and calls.h for counts and delays.
 *
 * The functions are those of hcsshim's hcn/zsyscall_windows.go, the settings those of
 * its hcn package. Windows has codes for a missing network and a missing endpoint; those
 * for a namespace and a load balancer are a guess: docs/guesses.md. Real HNS completes the
 * settings of what it makes; which fields it adds is not published. */
#include "hns.h"
#include "calls.h"

/* What a handle of an open object is. */
typedef struct {
    const wchar_t *kind;
    wchar_t id[40];
} OBJECT;

static void id_of(wchar_t *id, const GUID *guid)
{
    wchar_t braced[40];
    StringFromGUID2(guid, braced, 40);
    swprintf(id, 40, L"%.36ls", braced + 1);
}

static BOOL exists(const wchar_t *kind, const wchar_t *id)
{
    wchar_t path[HNS_PATH];
    path_of(path, kind, id);
    return GetFileAttributesW(path) != INVALID_FILE_ATTRIBUTES;
}

/* Copies the value of a name in the query's filter, a JSON text in a JSON text:
 * {"Filter":"{\"Name\":\"cbr0\"}"}. */
static BOOL filter_value(const wchar_t *query, const wchar_t *name, wchar_t *value, int size)
{
    wchar_t begin[64];
    const wchar_t *from, *to;
    swprintf(begin, 64, L"\\\"%ls\\\":\\\"", name);
    from = query ? wcsstr(query, begin) : NULL;
    if (!from)
        return FALSE;
    from += wcslen(begin);
    to = wcsstr(from, L"\\\"");
    if (!to)
        return FALSE;
    swprintf(value, size, L"%.*ls", (int)(to - from), from);
    value[size - 1] = 0;
    return TRUE;
}

/* Whether an object has the field with the value, in either case of its letters. It
 * is found if the JSON text has no spaces there, as in all that Go programs make. */
static BOOL has_field(const char *object, const wchar_t *field, const wchar_t *value)
{
    char wanted[HNS_PATH];
    size_t length;
    snprintf(wanted, sizeof wanted, "\"%ls\":\"%ls\"", field, value);
    for (length = strlen(wanted); *object; object++)
        if (_strnicmp(object, wanted, length) == 0)
            return TRUE;
    return FALSE;
}

/* Whether the object with an ID is one of those that a query asks for. */
static BOOL wanted(const wchar_t *kind, const wchar_t *id, const wchar_t *query)
{
    static const struct {
        const wchar_t *filter, *field;
    } fields[] = { { L"Name", L"Name" }, { L"VirtualNetwork", L"HostComputeNetwork" } };
    wchar_t value[256];
    int i;
    for (i = 0; i < 2; i++) {
        TEXT_ object = { 0 };
        BOOL has;
        if (!filter_value(query, fields[i].filter, value, 256))
            continue;
        has = add_object(&object, kind, id) && object.bytes && has_field(object.bytes, fields[i].field, value);
        free(object.bytes);
        if (!has)
            return FALSE;
    }
    return TRUE;
}

static HRESULT enumerate(const wchar_t *kind, const wchar_t *query, wchar_t **list, wchar_t **error)
{
    TEXT_ text = { 0 };
    wchar_t id[40];
    if (error)
        *error = NULL;
    if (filter_value(query, L"ID", id, 40)) {
        add_string(&text, "[");
        if (exists(kind, id)) {
            add_string(&text, "\"");
            add_wide(&text, id);
            add_string(&text, "\"");
        }
        add_string(&text, "]");
    } else {
        add_list(&text, kind, TRUE, wanted, query);
    }
    *list = give(&text);
    return S_OK;
}

static HRESULT not_found(const wchar_t *kind)
{
    if (wcscmp(kind, L"networks") == 0)
        return HNS_NETWORK_NOT_FOUND;
    if (wcscmp(kind, L"namespaces") == 0)
        return HNS_NETCOMPARTMENT_NOT_FOUND;
    return wcscmp(kind, L"loadbalancers") == 0 ? HNS_POLICY_NOT_FOUND : HNS_ENDPOINT_NOT_FOUND;
}

static HRESULT open(const wchar_t *kind, const GUID *id, void **handle, wchar_t **error)
{
    OBJECT *object = calloc(1, sizeof *object);
    if (error)
        *error = NULL;
    id_of(object->id, id);
    object->kind = kind;
    if (!exists(kind, object->id)) {
        free(object);
        return not_found(kind);
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
        return not_found(object->kind);
    *properties = give(&text);
    return S_OK;
}

/* Replaces a file by a whole one: a program that is killed leaves no half object. */
static BOOL write_file(const wchar_t *path, const TEXT_ *text)
{
    wchar_t unfinished[HNS_PATH];
    DWORD written;
    HANDLE file;
    BOOL done;
    swprintf(unfinished, HNS_PATH, HNS_FOLDER L"\\%lu-%lu.unfinished", GetCurrentProcessId(), GetCurrentThreadId());
    file = CreateFileW(unfinished, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return FALSE;
    done = WriteFile(file, text->bytes, text->length, &written, NULL);
    CloseHandle(file);
    return done && MoveFileExW(unfinished, path, MOVEFILE_REPLACE_EXISTING);
}

/* Writes an object: its ID, and the fields of the settings, which are a JSON object. */
static BOOL write_object(const wchar_t *kind, const wchar_t *id, const wchar_t *settings)
{
    wchar_t path[HNS_PATH];
    TEXT_ text = { 0 };
    char begin[64];
    const wchar_t *fields = settings ? wcschr(settings, L'{') : NULL;
    BOOL done;
    if (!fields)
        return FALSE;
    fields++;
    snprintf(begin, sizeof begin, "{\"ID\":\"%.36ls\"%s", id, fields[wcsspn(fields, L" \t\r\n")] == L'}' ? "" : ",");
    add_string(&text, begin);
    add_wide(&text, fields);
    CreateDirectoryW(HNS_FOLDER, NULL);
    swprintf(path, HNS_PATH, HNS_FOLDER L"\\%ls", kind);
    CreateDirectoryW(path, NULL);
    path_of(path, kind, id);
    done = write_file(path, &text);
    free(text.bytes);
    return done;
}

/* Makes an object. One for which the caller has no ID gets one. */
static HRESULT create(const char *function, const wchar_t *kind, const GUID *wanted, const wchar_t *settings, void **handle,
                      wchar_t **error)
{
    static const GUID none;
    GUID id = wanted ? *wanted : none;
    wchar_t text[40];
    if (error)
        *error = NULL;
    if (IsEqualGUID(&id, &none) && FAILED(CoCreateGuid(&id)))
        return E_FAIL;
    id_of(text, &id);
    if (exists(kind, text) || !write_object(kind, text, settings))
        return E_FAIL;
    record(function, text);
    return open(kind, &id, handle, error);
}

static HRESULT modify(const char *function, OBJECT *object, const wchar_t *settings, wchar_t **error)
{
    if (error)
        *error = NULL;
    if (!exists(object->kind, object->id))
        return not_found(object->kind);
    if (!write_object(object->kind, object->id, settings))
        return E_FAIL;
    record(function, object->id);
    return S_OK;
}

static HRESULT remove_object(const char *function, const wchar_t *kind, const GUID *id, wchar_t **error)
{
    wchar_t path[HNS_PATH], text[40];
    if (error)
        *error = NULL;
    id_of(text, id);
    path_of(path, kind, text);
    if (!DeleteFileW(path))
        return not_found(kind);
    record(function, text);
    return S_OK;
}

#define EXPORT __declspec(dllexport) HRESULT WINAPI
#define READ(name, names, folder) \
    EXPORT HcnEnumerate##names(const wchar_t *what, wchar_t **list, wchar_t **error) \
    { called("HcnEnumerate" #names, FALSE); return enumerate(folder, what, list, error); } \
    EXPORT HcnOpen##name(const GUID *id, void **handle, wchar_t **error) \
    { called("HcnOpen" #name, FALSE); return open(folder, id, handle, error); } \
    EXPORT HcnQuery##name##Properties(void *handle, const wchar_t *what, wchar_t **properties, wchar_t **error) \
    { called("HcnQuery" #name "Properties", FALSE); return query(handle, properties, error); } \
    EXPORT HcnClose##name(void *handle) { called("HcnClose" #name, FALSE); free(handle); return S_OK; }
#define DELETE_(name, folder) \
    EXPORT HcnDelete##name(const GUID *id, wchar_t **error) \
    { called("HcnDelete" #name, TRUE); return remove_object("HcnDelete" #name, folder, id, error); }

READ(Network, Networks, L"networks")

EXPORT HcnCreateNetwork(const GUID *id, const wchar_t *settings, void **handle, wchar_t **error)
{
    called("HcnCreateNetwork", TRUE);
    return create("HcnCreateNetwork", L"networks", id, settings, handle, error);
}

EXPORT HcnModifyNetwork(void *handle, const wchar_t *settings, wchar_t **error) { return HNS_NOT_SUPPORTED; }
DELETE_(Network, L"networks")

READ(Endpoint, Endpoints, L"endpoints")
DELETE_(Endpoint, L"endpoints")
EXPORT HcnModifyEndpoint(void *handle, const wchar_t *settings, wchar_t **error) { return HNS_NOT_SUPPORTED; }

/* The settings name the endpoint's network. */
EXPORT HcnCreateEndpoint(void *network, const GUID *id, const wchar_t *settings, void **handle, wchar_t **error)
{
    called("HcnCreateEndpoint", TRUE);
    return create("HcnCreateEndpoint", L"endpoints", id, settings, handle, error);
}

READ(LoadBalancer, LoadBalancers, L"loadbalancers")
DELETE_(LoadBalancer, L"loadbalancers")

EXPORT HcnCreateLoadBalancer(const GUID *id, const wchar_t *settings, void **handle, wchar_t **error)
{
    called("HcnCreateLoadBalancer", TRUE);
    return create("HcnCreateLoadBalancer", L"loadbalancers", id, settings, handle, error);
}

EXPORT HcnModifyLoadBalancer(void *handle, const wchar_t *settings, wchar_t **error)
{
    called("HcnModifyLoadBalancer", TRUE);
    return modify("HcnModifyLoadBalancer", handle, settings, error);
}

READ(Namespace, Namespaces, L"namespaces")
DELETE_(Namespace, L"namespaces")
EXPORT HcnModifyNamespace(void *handle, const wchar_t *settings, wchar_t **error) { return HNS_NOT_SUPPORTED; }

/* All namespaces are alike, whatever the settings. */
EXPORT HcnCreateNamespace(const GUID *id, const wchar_t *settings, void **handle, wchar_t **error)
{
    called("HcnCreateNamespace", TRUE);
    return create("HcnCreateNamespace", L"namespaces", id, L"{\"NamespaceId\":1,\"Type\":\"Host\",\"SchemaVersion\":{\"Major\":2,\"Minor\":0}}",
                  handle, error);
}
