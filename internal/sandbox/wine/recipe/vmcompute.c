/* vmcompute.dll: the old interface of Windows' Host Network Service, which kubelet
 * asks for the statistics of pods' networks, and the Host Compute Service, as far
 * as it tells of compute systems and ends them. It reads, see hns.h; it makes
 * nothing. The functions are those of hcsshim's internal/vmcompute and internal/hns
 * (hnsfuncs.go has the form of an answer: Success, Error, ErrorCode, Output). Real HCS
 * answers a termination with 0xC0370103, "pending", and ends it later. */
#include "hns.h"

#define SYSTEMS L"systems"
/* The version of HNS, unless a file names another one. It is the first in which clients change load balancers in their
 * place (hnslib v0.1.2, hcn/hcnglobals.go); that Server 2022 has it is a guess: docs/guesses.md. */
#define HNS_VERSION "{\"Major\":15,\"Minor\":5}"
/* The codes of this DLL, after hcsshim's internal/hcs/errors.go. Those of computecore.dll begin with 0x8. */
#define HCS_NOT_FOUND ((HRESULT)0xC037010E)
#define HCS_STOPPED ((HRESULT)0xC0370110)

static BOOL answer(TEXT_ *output, const wchar_t *method, const wchar_t *path)
{
    wchar_t kind[HNS_PATH];
    const wchar_t *id;
    size_t length;
    if (lstrcmpiW(method, L"GET") != 0)
        return FALSE;
    path += wcsspn(path, L"/");
    length = wcscspn(path, L"/");
    if (length == 0 || length >= HNS_PATH || wcsstr(path, L".."))
        return FALSE;
    wcsncpy(kind, path, length);
    kind[length] = 0;
    id = path + length + wcsspn(path + length, L"/");
    if (*id) {
        if (add_object(output, kind, id))
            return TRUE;
        if (lstrcmpiW(kind, L"globals") != 0 || lstrcmpiW(id, L"version") != 0)
            return FALSE;
        add_string(output, HNS_VERSION);
        return TRUE;
    }
    add_list(output, kind, FALSE, NULL, NULL);
    return TRUE;
}

__declspec(dllexport) HRESULT WINAPI HNSCall(const wchar_t *method, const wchar_t *path, const wchar_t *request, wchar_t **response)
{
    TEXT_ output = { 0 }, whole = { 0 };
    if (answer(&output, method, path)) {
        add_string(&whole, "{\"Success\":true,\"Output\":");
        add(&whole, output.bytes, output.length);
        add_string(&whole, "}");
    } else {
        add_string(&whole, "{\"Success\":false,\"Error\":\"Element not found.\",\"ErrorCode\":2151350274}");
    }
    free(output.bytes);
    *response = give(&whole);
    return S_OK;
}

/* A handle is the ID of the system that it is of. */

#define EXPORT __declspec(dllexport) HRESULT WINAPI

EXPORT HcsEnumerateComputeSystems(const wchar_t *query, wchar_t **systems, wchar_t **result)
{
    TEXT_ text = { 0 };
    *result = NULL;
    add_list(&text, SYSTEMS, FALSE, NULL, NULL);
    *systems = give(&text);
    return S_OK;
}

EXPORT HcsOpenComputeSystem(const wchar_t *id, wchar_t **system, wchar_t **result)
{
    TEXT_ text = { 0 };
    BOOL found = add_object(&text, SYSTEMS, id);
    *result = NULL;
    free(text.bytes);
    if (!found)
        return HCS_NOT_FOUND;
    *system = wcsdup(id);
    return S_OK;
}

EXPORT HcsCloseComputeSystem(wchar_t *system)
{
    free(system);
    return S_OK;
}

EXPORT HcsGetComputeSystemProperties(wchar_t *system, const wchar_t *query, wchar_t **properties, wchar_t **result)
{
    TEXT_ text = { 0 };
    *result = NULL;
    if (!add_object(&text, SYSTEMS, system))
        return HCS_NOT_FOUND;
    *properties = give(&text);
    return S_OK;
}

/* A system that has ended is gone, and its file with it. */
EXPORT HcsTerminateComputeSystem(wchar_t *system, const wchar_t *options, wchar_t **result)
{
    wchar_t path[HNS_PATH];
    *result = NULL;
    swprintf(path, HNS_PATH, HNS_FOLDER L"\\%ls\\%ls.json", SYSTEMS, system);
    return DeleteFileW(path) ? S_OK : HCS_STOPPED;
}

/* The layers of containers: none is ever made here, so that there is nothing to
 * undo, which containerd 1.6 asks for before it removes a folder. */
__declspec(dllexport) HRESULT WINAPI UnprepareLayer(void *driver, const wchar_t *id) { return S_OK; }

__declspec(dllexport) HRESULT WINAPI DeactivateLayer(void *driver, const wchar_t *id) { return S_OK; }
