/* vmcompute.dll: the old interface of Windows' Host Network Service, which kubelet
 * asks for the statistics of pods' networks. It reads, see hns.h; it makes nothing. */
#include "hns.h"

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
    if (*id)
        return add_object(output, kind, id);
    add_list(output, kind, FALSE);
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
