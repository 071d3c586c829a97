/* computenetwork.dll: the new interface of Windows' Host Network Service, which
 * says what networks, endpoints, namespaces and load balancers there are. It
 * reads, see hns.h; it makes nothing. */
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

#define EXPORT __declspec(dllexport) HRESULT WINAPI
#define KIND(name, names, folder) \
    EXPORT HcnEnumerate##names(const wchar_t *what, wchar_t **list, wchar_t **error) { return enumerate(folder, list, error); } \
    EXPORT HcnOpen##name(const GUID *id, void **handle, wchar_t **error) { return open(folder, id, handle, error); } \
    EXPORT HcnQuery##name##Properties(void *handle, const wchar_t *what, wchar_t **properties, wchar_t **error) \
    { return query(handle, properties, error); } \
    EXPORT HcnModify##name(void *handle, const wchar_t *settings, wchar_t **error) { return HNS_NOT_SUPPORTED; } \
    EXPORT HcnDelete##name(const GUID *id, wchar_t **error) { return HNS_NOT_SUPPORTED; } \
    EXPORT HcnClose##name(void *handle) { free(handle); return S_OK; }

KIND(Network, Networks, L"networks")
KIND(Endpoint, Endpoints, L"endpoints")
KIND(Namespace, Namespaces, L"namespaces")
KIND(LoadBalancer, LoadBalancers, L"loadbalancers")
