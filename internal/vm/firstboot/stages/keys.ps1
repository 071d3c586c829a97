    # sshd ignores the file if any other account has access. Names of accounts depend on
    # the language, their SIDs do not: SYSTEM and Administrators.
    $folder = Join-Path $env:ProgramData 'ssh'
    if (-not (Test-Path -LiteralPath $folder)) { throw ('sshd has not made ' + $folder) }
    $target = Join-Path $folder 'administrators_authorized_keys'
    $text = [System.IO.File]::ReadAllText((Join-Path $swdtMedia $swdtKeysFile))
    [System.IO.File]::WriteAllText($target, $text, (New-Object System.Text.UTF8Encoding $false))
    Invoke-Program 'icacls.exe' @($target, '/inheritance:r', '/grant:r', '*S-1-5-18:F', '/grant:r', '*S-1-5-32-544:F')
    foreach ($rule in (Get-Acl -LiteralPath $target).Access) {
        $sid = $rule.IdentityReference.Translate([System.Security.Principal.SecurityIdentifier]).Value
        if (@('S-1-5-18', 'S-1-5-32-544') -notcontains $sid) { throw ($sid + ' has access to ' + $target) }
    }
