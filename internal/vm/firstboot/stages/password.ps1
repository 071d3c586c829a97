    # Each account of this machine can read the password on the CD. The new one leaves the machine only sealed with
    # swdt's key, before it is set. Encrypt with $true pads by OAEP with SHA-1.
    $bytes = New-Object byte[] 24
    (New-Object System.Security.Cryptography.RNGCryptoServiceProvider).GetBytes($bytes)
    $text = 'Aa1-' + [Convert]::ToBase64String($bytes)
    $key = New-Object System.Security.Cryptography.RSAParameters
    $key.Modulus = [Convert]::FromBase64String($swdtPasswordKey)
    $key.Exponent = [byte[]](1, 0, 1)
    $rsa = New-Object System.Security.Cryptography.RSACryptoServiceProvider
    $rsa.ImportParameters($key)
    $sealed = $rsa.Encrypt([Text.Encoding]::ASCII.GetBytes($text), $true)
    Send-Mark ('stage=password sealed ' + [Convert]::ToBase64String($sealed))
    Get-LocalUser | Where-Object { $_.SID.Value -match '^S-1-5-21-.*-500$' } |
        Set-LocalUser -Password (ConvertTo-SecureString $text -AsPlainText -Force)
