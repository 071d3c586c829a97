$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
try { $swdtUtf8 = New-Object System.Text.UTF8Encoding $false; $OutputEncoding = $swdtUtf8; [Console]::OutputEncoding = $swdtUtf8; [Console]::InputEncoding = $swdtUtf8 } catch { }
$swdtScript = 'Get-Item ''it''''s'' |
  Select-Object Name # ‘‘quoted’’
exit 3'
try { & ([scriptblock]::Create($swdtScript)) } catch { [Console]::Error.WriteLine(($_ | Out-String -Width 4096).Trim()); exit 1 }
if (Test-Path -LiteralPath variable:\LASTEXITCODE) { exit $LASTEXITCODE }
exit 0
