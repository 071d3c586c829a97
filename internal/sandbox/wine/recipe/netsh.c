/* netsh.exe: Wine's does nothing and says that it succeeded. This one adds and
 * deletes rules of the firewall where Windows keeps them, in the registry. There is
 * no firewall behind them. The form of a rule is that of [MS-GPFAS] 2.2.2 ("Firewall
 * Rule Grammar"): one field for each port, range and profile. Windows writes a subnet
 * of RA4 with its mask; here it stays as it was given. */
#include <windows.h>
#include <stdio.h>
#include <wchar.h>

#define RULES L"SYSTEM\\CurrentControlSet\\Services\\SharedAccess\\Parameters\\FirewallPolicy\\FirewallRules"

static const wchar_t *value(int argc, wchar_t **argv, const wchar_t *name)
{
    size_t length = wcslen(name);
    for (int i = 5; i < argc; i++)
        if (_wcsnicmp(argv[i], name, length) == 0 && argv[i][length] == L'=')
            return argv[i] + length + 1;
    return L"";
}

static int is(const wchar_t *a, const wchar_t *b) { return _wcsicmp(a, b) == 0; }

static void field(wchar_t *rule, size_t size, const wchar_t *name, const wchar_t *text)
{
    if (*text && !is(text, L"any"))
        swprintf(rule + wcslen(rule), size - wcslen(rule), L"%ls=%ls|", name, text);
}

static const wchar_t *protocol_number(const wchar_t *name)
{
    if (is(name, L"tcp")) return L"6";
    if (is(name, L"udp")) return L"17";
    if (is(name, L"icmpv4")) return L"1";
    if (is(name, L"icmpv6")) return L"58";
    return name;
}

/* ports writes one field for each port or range of a list. */
static void ports(wchar_t *rule, size_t size, const wchar_t *list)
{
    wchar_t copy[1024];
    wcsncpy(copy, list, 1023);
    copy[1023] = 0;
    for (wchar_t *port = wcstok(copy, L","); port; port = wcstok(NULL, L","))
        field(rule, size, wcschr(port, L'-') ? L"LPort2_10" : L"LPort", port);
}

static void profiles(wchar_t *rule, size_t size, const wchar_t *list)
{
    wchar_t copy[128];
    wcsncpy(copy, list, 127);
    copy[127] = 0;
    for (wchar_t *one = wcstok(copy, L","); one; one = wcstok(NULL, L",")) {
        one[0] = towupper(one[0]);
        field(rule, size, L"Profile", one);
    }
}

static int add(int argc, wchar_t **argv)
{
    wchar_t rule[4096] = L"v2.31|", id[64];
    const size_t size = sizeof rule / sizeof *rule;
    GUID guid;
    const wchar_t *name = value(argc, argv, L"name");
    if (!*name || !*value(argc, argv, L"dir") || !*value(argc, argv, L"action"))
        return 1;
    field(rule, size, L"Action", is(value(argc, argv, L"action"), L"allow") ? L"Allow" : L"Block");
    field(rule, size, L"Active", is(value(argc, argv, L"enable"), L"no") ? L"FALSE" : L"TRUE");
    field(rule, size, L"Dir", is(value(argc, argv, L"dir"), L"out") ? L"Out" : L"In");
    field(rule, size, L"Protocol", protocol_number(value(argc, argv, L"protocol")));
    profiles(rule, size, is(value(argc, argv, L"profile"), L"any") ? L"" : value(argc, argv, L"profile"));
    ports(rule, size, value(argc, argv, L"localport"));
    field(rule, size, L"RA4", value(argc, argv, L"remoteip"));
    field(rule, size, L"App", value(argc, argv, L"program"));
    field(rule, size, L"Name", name);
    if (CoCreateGuid(&guid) != S_OK || !StringFromGUID2(&guid, id, 64))
        return 1;
    return RegSetKeyValueW(HKEY_LOCAL_MACHINE, RULES, id, REG_SZ, rule, (wcslen(rule) + 1) * sizeof *rule) != ERROR_SUCCESS;
}

static int delete(int argc, wchar_t **argv)
{
    wchar_t wanted[1024], id[256], rule[4096];
    int found = 0;
    HKEY key;
    swprintf(wanted, 1024, L"|Name=%ls|", value(argc, argv, L"name"));
    if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, RULES, 0, KEY_ALL_ACCESS, &key) != ERROR_SUCCESS)
        return 1;
    for (DWORD i = 0;;) {
        DWORD id_size = 256, size = sizeof rule;
        if (RegEnumValueW(key, i, id, &id_size, NULL, NULL, (BYTE *)rule, &size) != ERROR_SUCCESS)
            break;
        if (wcsstr(rule, wanted) && RegDeleteValueW(key, id) == ERROR_SUCCESS)
            found = 1;
        else
            i++;
    }
    RegCloseKey(key);
    return !found;
}

int wmain(int argc, wchar_t **argv)
{
    if (argc > 5 && is(argv[1], L"advfirewall") && is(argv[2], L"firewall") && is(argv[4], L"rule")) {
        if (is(argv[3], L"add"))
            return add(argc, argv);
        if (is(argv[3], L"delete"))
            return delete(argc, argv);
    }
    fprintf(stderr, "There is no such command of netsh in a Wine prefix.\n");
    return 1;
}
