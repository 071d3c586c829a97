/* bcryptprimitives.dll: Wine 8 has none, and Go's runtime refuses to start
 * without its ProcessPrng (golang/go, src/runtime/os_windows.go; golang/go#53192).
 * advapi32's RtlGenRandom (SystemFunction036) gives the same kind of bytes. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length)
{
    while (length > 0) {
        ULONG part = length > 0x40000000 ? 0x40000000 : (ULONG)length;
        if (!SystemFunction036(data, part))
            return FALSE;
        data += part;
        length -= part;
    }
    return TRUE;
}
