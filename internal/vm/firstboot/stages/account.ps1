    # The built-in Administrator has another name in some languages, and always this SID.
    Get-LocalUser | Where-Object { $_.SID.Value -match '^S-1-5-21-.*-500$' } | Set-LocalUser -PasswordNeverExpires $true
    if ($swdtRemoveAccount -and (Get-LocalUser -Name $swdtRemoveAccount -ErrorAction SilentlyContinue)) {
        Remove-LocalUser -Name $swdtRemoveAccount
    }
