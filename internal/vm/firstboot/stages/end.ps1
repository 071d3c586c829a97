if ($swdtFailed.Count -gt 0) {
    Send-Mark ('exit=1 failed: ' + ($swdtFailed -join ' '))
    exit 1
}
Send-Mark 'exit=0'
if ($swdtEnd -ne 'stay') { & (Join-Path $env:SystemRoot 'System32\shutdown.exe') /s /f /t 10 }
exit 0
