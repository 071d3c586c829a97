# The first logon of a machine that swdt has installed.
$swdtOpenSSHFile = ''
$swdtKeysFile = 'authorized_keys'
$swdtDriverFolder = ''
$swdtAgentFile = ''
$swdtRemoveAccount = ''
$swdtSysprepFile = ''
$swdtEnd = 'stay'
$swdtPasswordKey = 'xcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxQ=='

$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
$swdtMedia = $PSScriptRoot
$swdtLog = Join-Path $env:SystemRoot 'Panther\swdt-first-logon.log'
$swdtFailed = @()

# Send-Mark writes a line to the serial port and to the log. Neither may stop the script.
function Send-Mark([string]$Text) {
    $line = [regex]::Replace($Text, '[^ -~]+', ' ')
    if ($line.Length -gt 400) { $line = $line.Substring(0, 400) }
    $line = 'SWDT ' + $line
    try { Add-Content -LiteralPath $swdtLog -Value $line -Encoding ASCII } catch { }
    try {
        $port = New-Object System.IO.Ports.SerialPort 'COM1', 115200
        $port.WriteTimeout = 5000
        $port.Open()
        try { $port.Write("`r`n" + $line + "`r`n") } finally { $port.Close() }
    } catch { }
}

# Invoke-Stage runs a stage and reports how it ended.
function Invoke-Stage([string]$Name, [bool]$Required, [scriptblock]$Work) {
    Send-Mark ('stage=' + $Name + ' begin')
    try {
        $null = & $Work
        Send-Mark ('stage=' + $Name + ' ok')
    } catch {
        $problem = $_
        try { Add-Content -LiteralPath $swdtLog -Value ($problem | Out-String -Width 4096) -Encoding UTF8 } catch { }
        if ($Required) {
            $script:swdtFailed += $Name
            Send-Mark ('stage=' + $Name + ' error ' + $problem.Exception.Message)
        } else {
            Send-Mark ('stage=' + $Name + ' warn ' + $problem.Exception.Message)
        }
    }
}

# Invoke-Program runs a console program, and throws unless it ends with an allowed code.
# What a program writes to stderr is no error by itself.
function Invoke-Program([string]$File, [string[]]$Arguments, [int[]]$Allowed = @(0)) {
    $ErrorActionPreference = 'Continue'
    $output = (& $File $Arguments 2>&1 | Out-String).Trim()
    $code = $LASTEXITCODE
    if ($Allowed -notcontains $code) { throw ($File + ' ended with ' + $code + ': ' + $output) }
}

# Install-Package installs an MSI of the CD. 3010: it is installed, and asks for a restart.
function Install-Package([string]$Name, [string[]]$Properties) {
    $file = Join-Path $swdtMedia $Name
    $arguments = @('/i', ('"' + $file + '"')) + $Properties + @('/qn', '/norestart')
    $process = Start-Process -FilePath (Join-Path $env:SystemRoot 'System32\msiexec.exe') -ArgumentList $arguments -PassThru
    $null = $process.Handle
    if (-not $process.WaitForExit(900000)) { throw ('msiexec has not installed ' + $Name + ' within 15 minutes') }
    if (@(0, 3010) -notcontains $process.ExitCode) { throw ('msiexec ended with ' + $process.ExitCode + ' for ' + $Name) }
}

# Set-Number sets a DWORD of the registry, and makes its key.
function Set-Number([string]$Key, [string]$Name, [int]$Value) {
    if (-not (Test-Path -LiteralPath $Key)) { $null = New-Item -Path $Key -Force }
    $null = New-ItemProperty -LiteralPath $Key -Name $Name -Value $Value -PropertyType DWord -Force
}

Invoke-Stage 'network' $false {
    # Windows classifies a network some seconds after it has seen it.
    for ($look = 0; $look -lt 30; $look++) {
        $profiles = @(Get-NetConnectionProfile -ErrorAction SilentlyContinue)
        if ($profiles.Count -gt 0) { break }
        Start-Sleep -Seconds 2
    }
    if ($profiles.Count -eq 0) { throw 'there is no network after a minute' }
    $profiles | Where-Object { $_.NetworkCategory -eq 'Public' } | Set-NetConnectionProfile -NetworkCategory Private
}

Invoke-Stage 'openssh' $true {
    if (-not (Get-Service -Name 'sshd' -ErrorAction SilentlyContinue)) {
        throw 'this Windows has no OpenSSH server; give its MSI or zip'
    }
}

Invoke-Stage 'sshd' $true {
    Set-Service -Name 'sshd' -StartupType Automatic
    Invoke-Program 'sc.exe' @('failure', 'sshd', 'reset=', '86400', 'actions=', 'restart/15000/restart/15000/restart/60000')
    $service = Get-Service -Name 'sshd'
    if ($service.Status -ne 'Running') { $service.Start() }
    $service.WaitForStatus('Running', [TimeSpan]::FromSeconds(120))
}

Invoke-Stage 'keys' $true {
    # sshd ignores the file if any other account has access. Names of accounts depend on
    # the language, their SIDs do not: SYSTEM and Administrators.
    $folder = Join-Path $env:ProgramData 'ssh'
    if (-not (Test-Path -LiteralPath $folder)) { throw ('sshd has not made ' + $folder) }
    $target = Join-Path $folder 'administrators_authorized_keys'
    $text = [System.IO.File]::ReadAllText((Join-Path $swdtMedia $swdtKeysFile))
    [System.IO.File]::WriteAllText($target, $text, (New-Object System.Text.UTF8Encoding $false))
    Invoke-Program 'icacls.exe' @($target, '/inheritance:r', '/grant:r', '*S-1-5-18:F', '/grant:r', '*S-1-5-32-544:F')
    foreach ($rule in (Get-Acl -LiteralPath $target).Access) {
        $sid = $rule.IdentityReference.Translate([System.Security.Principal.SecurityIdentifier]).Value
        if (@('S-1-5-18', 'S-1-5-32-544') -notcontains $sid) { throw ($sid + ' has access to ' + $target) }
    }
}

Invoke-Stage 'firewall' $true {
    # The rules that come with OpenSSH leave out public networks.
    Get-NetFirewallRule -Name 'OpenSSH-Server-In-TCP' -ErrorAction SilentlyContinue | Remove-NetFirewallRule
    $null = New-NetFirewallRule -Name 'OpenSSH-Server-In-TCP' -DisplayName 'OpenSSH SSH Server (sshd)' -Enabled True `
        -Direction Inbound -Protocol TCP -LocalPort 22 -Action Allow -Profile Any
}

Invoke-Stage 'power' $false {
    Invoke-Program 'powercfg.exe' @('/hibernate', 'off') @(0, 1)
    foreach ($setting in @('standby-timeout-ac', 'standby-timeout-dc', 'monitor-timeout-ac', 'monitor-timeout-dc')) {
        Invoke-Program 'powercfg.exe' @('/change', $setting, '0')
    }
}

Invoke-Stage 'policies' $false {
    # Windows Update restarts no node, and a shutdown asks for no reason.
    Set-Number 'HKLM:\SOFTWARE\Policies\Microsoft\Windows\WindowsUpdate\AU' 'NoAutoUpdate' 1
    Set-Number 'HKLM:\SOFTWARE\Policies\Microsoft\Windows NT\Reliability' 'ShutdownReasonOn' 0
}

Invoke-Stage 'account' $false {
    # The built-in Administrator has another name in some languages, and always this SID.
    Get-LocalUser | Where-Object { $_.SID.Value -match '^S-1-5-21-.*-500$' } | Set-LocalUser -PasswordNeverExpires $true
    if ($swdtRemoveAccount -and (Get-LocalUser -Name $swdtRemoveAccount -ErrorAction SilentlyContinue)) {
        Remove-LocalUser -Name $swdtRemoveAccount
    }
}

Invoke-Stage 'sconfig' $false {
    # Server Core of 2022 and later opens a menu at each logon.
    if (Get-Command -Name 'Set-SConfig' -ErrorAction SilentlyContinue) { Set-SConfig -AutoLaunch $false }
}

Invoke-Stage 'autologon' $true {
    $key = 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Winlogon'
    Set-ItemProperty -LiteralPath $key -Name 'AutoAdminLogon' -Value '0'
    foreach ($name in @('DefaultPassword', 'AutoLogonCount')) {
        if ((Get-Item -LiteralPath $key).GetValueNames() -contains $name) { Remove-ItemProperty -LiteralPath $key -Name $name }
    }
}

Invoke-Stage 'lsasecret' $false {
    # Windows may keep the password of the automatic logon as a secret of LSA, too.
    # LsaStorePrivateData without a value deletes it; 0xC0000034 means that there is none.
    Add-Type -TypeDefinition @'
using System;
using System.ComponentModel;
using System.Runtime.InteropServices;

public static class SwdtSecret
{
    [StructLayout(LayoutKind.Sequential)]
    private struct Text { public ushort Length; public ushort MaximumLength; public IntPtr Buffer; }

    [StructLayout(LayoutKind.Sequential)]
    private struct Attributes
    {
        public int Length; public IntPtr RootDirectory; public IntPtr ObjectName;
        public int Flags; public IntPtr SecurityDescriptor; public IntPtr SecurityQuality;
    }

    [DllImport("advapi32.dll")]
    private static extern uint LsaOpenPolicy(IntPtr system, ref Attributes attributes, int access, out IntPtr policy);
    [DllImport("advapi32.dll")]
    private static extern uint LsaStorePrivateData(IntPtr policy, ref Text name, IntPtr value);
    [DllImport("advapi32.dll")]
    private static extern uint LsaClose(IntPtr policy);
    [DllImport("advapi32.dll")]
    private static extern int LsaNtStatusToWinError(uint status);

    public static void Delete(string key)
    {
        var attributes = new Attributes();
        attributes.Length = Marshal.SizeOf(typeof(Attributes));
        IntPtr policy;
        Check(LsaOpenPolicy(IntPtr.Zero, ref attributes, 0x20, out policy)); // POLICY_CREATE_SECRET
        var name = new Text();
        name.Length = (ushort)(2 * key.Length);
        name.MaximumLength = (ushort)(2 * key.Length + 2);
        name.Buffer = Marshal.StringToHGlobalUni(key);
        try
        {
            uint status = LsaStorePrivateData(policy, ref name, IntPtr.Zero);
            if (status != 0xC0000034) { Check(status); }
        }
        finally
        {
            Marshal.FreeHGlobal(name.Buffer);
            LsaClose(policy);
        }
    }

    private static void Check(uint status)
    {
        if (status != 0) { throw new Win32Exception(LsaNtStatusToWinError(status)); }
    }
}
'@
    [SwdtSecret]::Delete('DefaultPassword')
}

Invoke-Stage 'panther' $true {
    # Setup keeps copies of the answer file, which has the password.
    $patterns = @(
        (Join-Path $env:SystemRoot 'Panther\*unattend*.xml'),
        (Join-Path $env:SystemRoot 'Panther\Unattend\*.xml'),
        (Join-Path $env:SystemRoot 'System32\Sysprep\*unattend*.xml'),
        ($env:SystemDrive + '\*unattend*.xml')
    )
    Get-ChildItem -Path $patterns -Force -ErrorAction SilentlyContinue | Remove-Item -Force
    $left = @(Get-ChildItem -Path $patterns -Force -ErrorAction SilentlyContinue)
    if ($left.Count -gt 0) { throw ('these copies of the answer file are left: ' + ($left.FullName -join ' ')) }
}

Invoke-Stage 'password' $true {
    # Each account of this machine can read the password on the CD. The new one leaves the machine only sealed with
    # swdt's key, before it is set. Encrypt with $true pads by OAEP with SHA-1.
    $bytes = New-Object byte[] 24
    (New-Object System.Security.Cryptography.RNGCryptoServiceProvider).GetBytes($bytes)
    $text = 'Aa1-' + [Convert]::ToBase64String($bytes)
    $key = New-Object System.Security.Cryptography.RSAParameters
    $key.Modulus = [Convert]::FromBase64String($swdtPasswordKey)
    $key.Exponent = [byte[]](1, 0, 1)
    $rsa = New-Object System.Security.Cryptography.RSACryptoServiceProvider
    $rsa.ImportParameters($key)
    $sealed = $rsa.Encrypt([Text.Encoding]::ASCII.GetBytes($text), $true)
    Send-Mark ('stage=password sealed ' + [Convert]::ToBase64String($sealed))
    Get-LocalUser | Where-Object { $_.SID.Value -match '^S-1-5-21-.*-500$' } |
        Set-LocalUser -Password (ConvertTo-SecureString $text -AsPlainText -Force)
}

if ($swdtFailed.Count -eq 0) {
Invoke-Stage 'eject' $false {
    # The CD has the Administrator's password, and each account of this machine can read it.
    Add-Type -TypeDefinition @'
using System;
using System.ComponentModel;
using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

public static class SwdtDrive
{
    [DllImport("kernel32.dll", SetLastError = true, CharSet = CharSet.Unicode)]
    private static extern SafeFileHandle CreateFile(string name, uint access, int share, IntPtr security,
        int disposition, int flags, IntPtr template);
    [DllImport("kernel32.dll", SetLastError = true)]
    private static extern bool DeviceIoControl(SafeFileHandle drive, uint code, IntPtr input, int inputSize,
        IntPtr output, int outputSize, out int returned, IntPtr overlapped);

    public static void Eject(string name)
    {
        // GENERIC_READ, shared, OPEN_EXISTING, IOCTL_STORAGE_EJECT_MEDIA
        using (var drive = CreateFile(name, 0x80000000, 3, IntPtr.Zero, 3, 0, IntPtr.Zero))
        {
            int returned;
            if (drive.IsInvalid || !DeviceIoControl(drive, 0x2D4808, IntPtr.Zero, 0, IntPtr.Zero, 0, out returned, IntPtr.Zero))
            {
                throw new Win32Exception(Marshal.GetLastWin32Error());
            }
        }
    }
}
'@
    [SwdtDrive]::Eject('\\.\' + [IO.Path]::GetPathRoot($swdtMedia).TrimEnd('\'))
}
}

Invoke-Stage 'console' $false {
    # The Administrator has logged on by himself; whoever sees the screen is not him.
    Start-Process -FilePath (Join-Path $env:SystemRoot 'System32\rundll32.exe') -ArgumentList 'user32.dll,LockWorkStation'
}

if ($swdtFailed.Count -gt 0) {
    Send-Mark ('exit=1 failed: ' + ($swdtFailed -join ' '))
    exit 1
}
Send-Mark 'exit=0'
if ($swdtEnd -ne 'stay') { & (Join-Path $env:SystemRoot 'System32\shutdown.exe') /s /f /t 10 }
exit 0
