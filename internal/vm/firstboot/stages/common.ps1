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
