    if (-not (Get-Service -Name 'sshd' -ErrorAction SilentlyContinue)) {
        throw 'this Windows has no OpenSSH server; give its MSI or zip'
    }
