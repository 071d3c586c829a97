Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
ConvertTo-Json -Compress -Depth 4 -InputObject @{VMs=@(Hyper-V\Get-VM | Select-Object -Property @{Name='Id';Expression={[string]$_.Id}},@{Name='Name';Expression={$_.Name}},@{Name='State';Expression={[string]$_.State}},@{Name='Status';Expression={[string]$_.Status}},@{Name='Uptime';Expression={$_.Uptime.TotalSeconds}},@{Name='Notes';Expression={$_.Notes}},@{Name='ConfigurationLocation';Expression={$_.ConfigurationLocation}})}

Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
ConvertTo-Json -Compress -Depth 4 -InputObject @{Checkpoints=@(Hyper-V\Get-VMSnapshot -VM (Hyper-V\Get-VM -Id 'ID') | Select-Object -Property @{Name='Id';Expression={[string]$_.Id}},@{Name='Name';Expression={$_.Name}},@{Name='CreationTime';Expression={$_.CreationTime.ToUniversalTime().ToString('o')}},@{Name='SizeOfSystemFiles';Expression={$_.SizeOfSystemFiles}})}

Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
Hyper-V\Stop-VM -VM (Hyper-V\Get-VM -Id 'ID') -TurnOff -Force -Confirm:$false
Hyper-V\Restore-VMSnapshot -VMSnapshot (Hyper-V\Get-VMSnapshot -Id 'ID') -Confirm:$false

Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
Hyper-V\Start-VM -VM (Hyper-V\Get-VM -Id 'ID')
