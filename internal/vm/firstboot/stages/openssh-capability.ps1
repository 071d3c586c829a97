    $capability = Get-WindowsCapability -Online -Name 'OpenSSH.Server*' | Select-Object -First 1
    if (-not $capability) { throw 'this Windows has no capability OpenSSH.Server; give its MSI or zip' }
    if ($capability.State -ne 'Installed') { $null = Add-WindowsCapability -Online -Name $capability.Name }
