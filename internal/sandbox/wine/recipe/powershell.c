/* powershell.exe: there is none for Wine, whose own does nothing and says that it
 * succeeded. This one answers the two questions that kubeadm's system verification
 * has (k8s.io/system-validators, validators/os_validator_windows.go and
 * kernel_validator_helper_windows.go), out of the registry as PowerShell would, and
 * fails for all else. */
#include <windows.h>
#include <stdio.h>
#include <wchar.h>

#define VERSION_KEY L"SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion"

static int print_product_name(void)
{
    wchar_t name[128];
    DWORD size = sizeof name;
    if (RegGetValueW(HKEY_LOCAL_MACHINE, VERSION_KEY, L"ProductName", RRF_RT_REG_SZ, NULL, name, &size) != ERROR_SUCCESS)
        return 1;
    printf("%ls\r\n", name);
    return 0;
}

static int print_version(void)
{
    wchar_t build[32];
    DWORD major, minor, size = sizeof major;
    if (RegGetValueW(HKEY_LOCAL_MACHINE, VERSION_KEY, L"CurrentMajorVersionNumber", RRF_RT_REG_DWORD, NULL, &major, &size) != ERROR_SUCCESS)
        return 1;
    size = sizeof minor;
    if (RegGetValueW(HKEY_LOCAL_MACHINE, VERSION_KEY, L"CurrentMinorVersionNumber", RRF_RT_REG_DWORD, NULL, &minor, &size) != ERROR_SUCCESS)
        return 1;
    size = sizeof build;
    if (RegGetValueW(HKEY_LOCAL_MACHINE, VERSION_KEY, L"CurrentBuildNumber", RRF_RT_REG_SZ, NULL, build, &size) != ERROR_SUCCESS)
        return 1;
    printf("%lu.%lu.%ls\r\n", major, minor, build);
    return 0;
}

int wmain(int argc, wchar_t **argv)
{
    const wchar_t *script = argc == 2 ? argv[1] : L"";
    if (wcsstr(script, L"Get-ItemProperty") && wcsstr(script, L"CurrentVersion'")) {
        if (wcsstr(script, L").ProductName"))
            return print_product_name();
        if (wcsstr(script, L"$($props.CurrentMajorVersionNumber).$($props.CurrentMinorVersionNumber).$($props.CurrentBuildNumber)"))
            return print_version();
    }
    fprintf(stderr, "There is no PowerShell in a Wine prefix.\r\n");
    return 1;
}
