Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
ConvertTo-Json -Compress -Depth 4 -InputObject @{VMs=@(Hyper-V\Get-VM | Select-Object -Property @{Name='Id';Expression={[string]$_.Id}},@{Name='Name';Expression={$_.Name}},@{Name='State';Expression={[string]$_.State}},@{Name='Status';Expression={[string]$_.Status}},@{Name='Uptime';Expression={$_.Uptime.TotalSeconds}},@{Name='Notes';Expression={$_.Notes}},@{Name='ConfigurationLocation';Expression={$_.ConfigurationLocation}})}

Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
Hyper-V\Remove-VM -VM (Hyper-V\Get-VM -Id 'ID') -Force -Confirm:$false
