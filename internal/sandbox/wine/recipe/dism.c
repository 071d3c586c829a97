/* dism.exe: Wine's does nothing and says that it succeeded. This one has the
 * features of a Windows Server that matter to Kubernetes, none of them enabled at
 * first, and keeps their states in the registry. As on Windows, a change takes
 * effect with the next boot: exit code 3010 is ERROR_SUCCESS_REBOOT_REQUIRED, and
 * 0x800f080c is the code that DISM prints for an unknown feature ("DISM Operating System
 * Package Servicing Command-Line Options" has the options and states). */
#include <windows.h>
#include <stdio.h>
#include <wchar.h>

#define FEATURES L"SOFTWARE\\swdt sandbox\\Features"
#define PREFETCH L"SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Memory Management\\PrefetchParameters"

#define REBOOT_REQUIRED 3010
#define UNKNOWN_FEATURE 0x800f080c

static const wchar_t *known[] = { L"Containers", L"Microsoft-Hyper-V", L"Microsoft-Hyper-V-Online", L"Microsoft-Hyper-V-Management-PowerShell" };

static DWORD get(const wchar_t *key, const wchar_t *name, DWORD otherwise)
{
    DWORD value, size = sizeof value;
    if (RegGetValueW(HKEY_LOCAL_MACHINE, key, name, RRF_RT_REG_DWORD, NULL, &value, &size) != ERROR_SUCCESS)
        return otherwise;
    return value;
}

static int set(const wchar_t *name, DWORD value)
{
    return RegSetKeyValueW(HKEY_LOCAL_MACHINE, FEATURES, name, REG_DWORD, &value, sizeof value) == ERROR_SUCCESS;
}

/* The value NAME is whether the feature is wanted, NAME.boot the boot in which
 * that was said. */
static void boot_of(const wchar_t *feature, wchar_t *name, size_t size)
{
    swprintf(name, size, L"%ls.boot", feature);
}

static DWORD this_boot(void) { return get(PREFETCH, L"BootId", 0); }

static int print_state(const wchar_t *feature)
{
    wchar_t boot[128];
    DWORD wanted = get(FEATURES, feature, 0);
    boot_of(feature, boot, 128);
    int pending = get(FEATURES, boot, (DWORD)-1) == this_boot();
    printf("Feature Name : %ls\nState : %s\n", feature,
           wanted ? (pending ? "Enable Pending" : "Enabled") : (pending ? "Disable Pending" : "Disabled"));
    return 0;
}

static int change(const wchar_t *feature, DWORD wanted)
{
    wchar_t boot[128];
    if (get(FEATURES, feature, 0) == wanted)
        return 0;
    boot_of(feature, boot, 128);
    if (!set(feature, wanted) || !set(boot, this_boot()))
        return 1;
    return REBOOT_REQUIRED;
}

static const wchar_t *option(int argc, wchar_t **argv, const wchar_t *name)
{
    for (int i = 1; i < argc; i++)
        if (_wcsnicmp(argv[i], name, wcslen(name)) == 0)
            return argv[i] + wcslen(name);
    return NULL;
}

int wmain(int argc, wchar_t **argv)
{
    const wchar_t *wanted = option(argc, argv, L"/FeatureName:"), *feature = NULL;
    for (size_t i = 0; wanted && i < sizeof known / sizeof *known; i++)
        if (_wcsicmp(wanted, known[i]) == 0)
            feature = known[i];
    if (!feature)
        return UNKNOWN_FEATURE;
    if (option(argc, argv, L"/Get-FeatureInfo"))
        return print_state(feature);
    if (option(argc, argv, L"/Enable-Feature"))
        return change(feature, 1);
    if (option(argc, argv, L"/Disable-Feature"))
        return change(feature, 0);
    fprintf(stderr, "There is no such option of DISM in a Wine prefix.\n");
    return 87;
}
