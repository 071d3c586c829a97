Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
ConvertTo-Json -Compress -Depth 4 -InputObject @{VMs=@(Hyper-V\Get-VM | Select-Object -Property @{Name='Id';Expression={[string]$_.Id}},@{Name='Name';Expression={$_.Name}},@{Name='State';Expression={[string]$_.State}},@{Name='Status';Expression={[string]$_.Status}},@{Name='Uptime';Expression={$_.Uptime.TotalSeconds}},@{Name='Notes';Expression={$_.Notes}},@{Name='ConfigurationLocation';Expression={$_.ConfigurationLocation}})}

Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
ConvertTo-Json -Compress -Depth 4 -InputObject @{Results=@(CimCmdlets\Invoke-CimMethod -InputObject (CimCmdlets\Get-CimInstance -Namespace 'root\virtualization\v2' -ClassName 'Msvm_Keyboard' -Filter 'SystemName=''ID''') -MethodName 'TypeScancodes' -Arguments @{Scancodes=[byte[]]@(29,56,224,83,224,211,184,157,28,156)} | Select-Object -Property @{Name='ReturnValue';Expression={$_.ReturnValue}})}
