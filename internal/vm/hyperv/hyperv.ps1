# hyperv.ps1 is the part of swdt that calls Hyper-V. It reads one JSON object from stdin: a verb and its arguments,
# which are data and never code. It prints one JSON object, or nothing. Each property of the output is a list.
# Cmdlets have their module's name: VMware's module has a Get-VM, too. Enumerations and times become text here, since
# their JSON differs between versions of PowerShell.
# By hand: '{"verb":"list"}' | powershell.exe -NoProfile -File hyperv.ps1
$ErrorActionPreference = 'Stop'
$WarningPreference = 'SilentlyContinue'
$asked = [Console]::In.ReadToEnd() | ConvertFrom-Json

function Write-Result([hashtable] $result) { ConvertTo-Json -Compress -Depth 4 -InputObject $result }

function Get-AskedVM { Hyper-V\Get-VM -Id $asked.id }

function Get-AskedCheckpoint { Hyper-V\Get-VMSnapshot -Id $asked.checkpoint }

switch ($asked.verb) {
    'modules' { Write-Result @{ Modules = @(Get-Module -ListAvailable -Name 'Hyper-V' | ForEach-Object { $_.Name }) } }
    'hosts' { Write-Result @{ Hosts = @(Hyper-V\Get-VMHost | ForEach-Object { $_.Name }) } }
    'switches' { Write-Result @{ Switches = @(Hyper-V\Get-VMSwitch | ForEach-Object { $_.Name }) } }
    'image' {
        Write-Result @{ Images = @(Hyper-V\Get-VHD -Path $asked.path | ForEach-Object {
            @{ VhdFormat = [string]$_.VhdFormat; Size = $_.Size }
        }) }
    }
    'list' {
        Write-Result @{ VMs = @(Hyper-V\Get-VM | ForEach-Object {
            @{
                Id = [string]$_.Id; Name = $_.Name; State = [string]$_.State; Uptime = $_.Uptime.TotalSeconds
                Notes = $_.Notes; ConfigurationLocation = $_.ConfigurationLocation
            }
        }) }
    }
    'newDisk' { $null = Hyper-V\New-VHD -Path $asked.path -SizeBytes $asked.size -Dynamic }
    'newDiskOver' {
        $null = Hyper-V\New-VHD -Path $asked.path -ParentPath $asked.base -Differencing
        if ($asked.grows) { Hyper-V\Resize-VHD -Path $asked.path -SizeBytes $asked.size }
    }
    'new' {
        $vm = Hyper-V\New-VM -Name $asked.name -Generation 2 -MemoryStartupBytes $asked.memory -VHDPath $asked.disk -Path $asked.folder -SwitchName $asked.switch
        Hyper-V\Set-VM -VM $vm -Notes $asked.notes -ProcessorCount $asked.processors -StaticMemory -CheckpointType 'Standard' -AutomaticStartAction 'Nothing' -AutomaticStopAction 'ShutDown'
        # The Hyper-V of Windows Server 2016 lacks the parameter, and makes no checkpoints on its own
        # (hashicorp/vagrant#10251).
        if ((Get-Command -Name 'Hyper-V\Set-VM').Parameters.ContainsKey('AutomaticCheckpointsEnabled')) {
            Hyper-V\Set-VM -VM $vm -AutomaticCheckpointsEnabled $false
        }
        # HNS in the guest sends frames with other MAC addresses than the card's own.
        Hyper-V\Set-VMNetworkAdapter -VM $vm -StaticMacAddress $asked.mac -MacAddressSpoofing 'On'
        if ($asked.secureBoot) {
            Hyper-V\Set-VMFirmware -VM $vm -EnableSecureBoot 'On' -SecureBootTemplate 'MicrosoftWindows'
        } else {
            Hyper-V\Set-VMFirmware -VM $vm -EnableSecureBoot 'Off'
        }
        if ($asked.tpm) {
            Hyper-V\Set-VMKeyProtector -VM $vm -NewLocalKeyProtector
            Hyper-V\Enable-VMTPM -VM $vm
        }
        foreach ($disc in $asked.discs) { Hyper-V\Add-VMDvdDrive -VM $vm -Path $disc }
        Write-Result @{ VMs = @(@{ Id = [string]$vm.Id }) }
    }
    'remove' { Hyper-V\Remove-VM -VM (Get-AskedVM) -Force -Confirm:$false }
    'start' { Hyper-V\Start-VM -VM (Get-AskedVM) }
    'stop' { Hyper-V\Stop-VM -VM (Get-AskedVM) -Force -Confirm:$false }
    'turnOff' { Hyper-V\Stop-VM -VM (Get-AskedVM) -TurnOff -Force -Confirm:$false }
    'restart' { Hyper-V\Restart-VM -VM (Get-AskedVM) -Force -Confirm:$false }
    'checkpoints' {
        Write-Result @{ Checkpoints = @(Hyper-V\Get-VMSnapshot -VM (Get-AskedVM) | ForEach-Object {
            @{
                Id = [string]$_.Id; Name = $_.Name; SizeOfSystemFiles = $_.SizeOfSystemFiles
                CreationTime = $_.CreationTime.ToUniversalTime().ToString('o')
            }
        }) }
    }
    'save' {
        Write-Result @{ Checkpoints = @(Hyper-V\Checkpoint-VM -VM (Get-AskedVM) -SnapshotName $asked.name -Passthru | ForEach-Object {
            @{ Id = [string]$_.Id }
        }) }
    }
    'restore' { Hyper-V\Restore-VMSnapshot -VMSnapshot (Get-AskedCheckpoint) -Confirm:$false }
    'removeCheckpoint' { Hyper-V\Remove-VMSnapshot -VMSnapshot (Get-AskedCheckpoint) -Confirm:$false }
    'addresses' {
        $neighbours = NetTCPIP\Get-NetNeighbor -LinkLayerAddress $asked.mac -ErrorAction 'SilentlyContinue'
        Write-Result @{
            Adapters = @(Hyper-V\Get-VMNetworkAdapter -VM (Get-AskedVM) | ForEach-Object { $_.IPAddresses })
            Neighbours = @($neighbours | ForEach-Object { $_.IPAddress })
        }
    }
    # Hyper-V's module has no cmdlets for screens and keys.
    'screen' {
        $settings = CimCmdlets\Get-CimInstance -Namespace 'root\virtualization\v2' -ClassName 'Msvm_VirtualSystemSettingData' -Filter "VirtualSystemIdentifier='$($asked.id)' AND VirtualSystemType='Microsoft:Hyper-V:System:Realized'"
        $service = CimCmdlets\Get-CimInstance -Namespace 'root\virtualization\v2' -ClassName 'Msvm_VirtualSystemManagementService'
        $size = @{ TargetSystem = $settings; WidthPixels = [uint16]$asked.width; HeightPixels = [uint16]$asked.height }
        Write-Result @{ Screens = @(CimCmdlets\Invoke-CimMethod -InputObject $service -MethodName 'GetVirtualSystemThumbnailImage' -Arguments $size | ForEach-Object {
            @{ ReturnValue = $_.ReturnValue; ImageData = [System.Convert]::ToBase64String($_.ImageData) }
        }) }
    }
    'keys' {
        $keyboard = CimCmdlets\Get-CimInstance -Namespace 'root\virtualization\v2' -ClassName 'Msvm_Keyboard' -Filter "SystemName='$($asked.id)'"
        $codes = @{ Scancodes = [byte[]]$asked.codes }
        Write-Result @{ Results = @(CimCmdlets\Invoke-CimMethod -InputObject $keyboard -MethodName 'TypeScancodes' -Arguments $codes | ForEach-Object { $_.ReturnValue }) }
    }
    default { throw "hyperv.ps1 has no verb $($asked.verb)" }
}
