/* bindfltapi.dll: Windows' bind filter, which shows one folder in the place of
 * another. There is none here, so that nothing is ever bound: containerd, which
 * removes what may be bound before it removes a folder, is told so: go-winio's
 * pkg/bindfilter, RemoveFileBinding, which containerd's mount_windows.go calls. */
#include <windows.h>

__declspec(dllexport) HRESULT WINAPI BfRemoveMapping(HANDLE job, const wchar_t *path)
{
    return HRESULT_FROM_WIN32(ERROR_INVALID_PARAMETER); /* there is no such mapping */
}
