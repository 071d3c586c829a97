Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
ConvertTo-Json -Compress -Depth 4 -InputObject @{VMs=@(Hyper-V\Get-VM | Select-Object -Property @{Name='Id';Expression={[string]$_.Id}},@{Name='Name';Expression={$_.Name}},@{Name='State';Expression={[string]$_.State}},@{Name='Status';Expression={[string]$_.Status}},@{Name='Uptime';Expression={$_.Uptime.TotalSeconds}},@{Name='Notes';Expression={$_.Notes}},@{Name='ConfigurationLocation';Expression={$_.ConfigurationLocation}})}

Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
ConvertTo-Json -Compress -Depth 4 -InputObject @{Images=@(Hyper-V\Get-VHD -Path 'IMAGES/o''image.vhdx' | Select-Object -Property @{Name='VhdFormat';Expression={[string]$_.VhdFormat}},@{Name='Size';Expression={$_.Size}})}

Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
Hyper-V\New-VHD -Path 'STORE/it''s $(a) folder/hyperv/disk.vhdx' -ParentPath 'IMAGES/o''image.vhdx' -Differencing
Hyper-V\Resize-VHD -Path 'STORE/it''s $(a) folder/hyperv/disk.vhdx' -SizeBytes 68719476736

Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
ConvertTo-Json -Compress -Depth 4 -InputObject @{Commands=@(Get-Command -Name 'Hyper-V\Set-VM' | Select-Object -Property @{Name='Parameters';Expression={@($_.Parameters.Keys)}})}

Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
$vm = Hyper-V\New-VM -Name 'it''s $(a) folder' -Generation 2 -MemoryStartupBytes 1073741824 -VHDPath 'STORE/it''s $(a) folder/hyperv/disk.vhdx' -Path 'STORE/it''s $(a) folder/hyperv' -SwitchName '‘‘vSwitch’’ (größer)'
Hyper-V\Set-VM -VM $vm -Notes 'swdt UUID' -ProcessorCount 2 -StaticMemory -CheckpointType 'Standard' -AutomaticStartAction 'Nothing' -AutomaticStopAction 'ShutDown' -AutomaticCheckpointsEnabled $false
Hyper-V\Set-VMNetworkAdapter -VM $vm -StaticMacAddress '5254000A0B0C' -MacAddressSpoofing 'On'
Hyper-V\Set-VMFirmware -VM $vm -EnableSecureBoot 'On' -SecureBootTemplate 'MicrosoftWindows'
Hyper-V\Set-VMKeyProtector -VM $vm -NewLocalKeyProtector
Hyper-V\Enable-VMTPM -VM $vm
Hyper-V\Add-VMDvdDrive -VM $vm -Path '/iso/it''s.iso'
ConvertTo-Json -Compress -Depth 4 -InputObject @{VMs=@(Write-Output -InputObject $vm | Select-Object -Property @{Name='Id';Expression={[string]$_.Id}})}
