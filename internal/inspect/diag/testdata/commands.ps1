# adapters
Get-NetAdapter -IncludeHidden | Format-List * | Out-String -Width 400
# defender
Get-MpPreference | Select-Object 'Exclusion*', 'DisableRealtimeMonitoring' | Format-List | Out-String -Width 400
