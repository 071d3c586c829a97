Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
ConvertTo-Json -Compress -Depth 4 -InputObject @{Modules=@(Get-Module -ListAvailable -Name 'Hyper-V' | Select-Object -Property @{Name='Name';Expression={$_.Name}})}

Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
ConvertTo-Json -Compress -Depth 4 -InputObject @{Hosts=@(Hyper-V\Get-VMHost | Select-Object -Property @{Name='Name';Expression={$_.Name}})}

Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
ConvertTo-Json -Compress -Depth 4 -InputObject @{Switches=@(Hyper-V\Get-VMSwitch | Select-Object -Property @{Name='Name';Expression={$_.Name}})}

Set-Variable -Name 'WarningPreference' -Value 'SilentlyContinue'
ConvertTo-Json -Compress -Depth 4 -InputObject @{Images=@(Hyper-V\Get-VHD -Path 'IMAGES/o''image.vhdx' | Select-Object -Property @{Name='VhdFormat';Expression={[string]$_.VhdFormat}},@{Name='Size';Expression={$_.Size}})}
