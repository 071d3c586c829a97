    $key = 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Winlogon'
    Set-ItemProperty -LiteralPath $key -Name 'AutoAdminLogon' -Value '0'
    foreach ($name in @('DefaultPassword', 'AutoLogonCount')) {
        if ((Get-Item -LiteralPath $key).GetValueNames() -contains $name) { Remove-ItemProperty -LiteralPath $key -Name $name }
    }
