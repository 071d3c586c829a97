    # Below Program Files no ordinary user can write, which sshd demands of its folder.
    $target = Join-Path $env:ProgramFiles 'OpenSSH'
    $staging = Join-Path $env:ProgramFiles 'OpenSSH.new'
    foreach ($folder in @($target, $staging)) {
        if (Test-Path -LiteralPath $folder) { Remove-Item -LiteralPath $folder -Recurse -Force }
    }
    Expand-Archive -LiteralPath (Join-Path $swdtMedia $swdtOpenSSHFile) -DestinationPath $staging
    $installer = Get-ChildItem -LiteralPath $staging -Recurse -Filter 'install-sshd.ps1' | Select-Object -First 1
    if (-not $installer) { throw ($swdtOpenSSHFile + ' has no install-sshd.ps1') }
    Move-Item -LiteralPath $installer.DirectoryName -Destination $target
    if (Test-Path -LiteralPath $staging) { Remove-Item -LiteralPath $staging -Recurse -Force }
    $script = Join-Path $target 'install-sshd.ps1'
    Invoke-Program 'powershell.exe' @('-NoProfile', '-NonInteractive', '-ExecutionPolicy', 'Bypass', '-File', $script)
    $path = [Environment]::GetEnvironmentVariable('Path', 'Machine')
    if (($path -split ';') -notcontains $target) {
        [Environment]::SetEnvironmentVariable('Path', ($path.TrimEnd(';') + ';' + $target), 'Machine')
    }
