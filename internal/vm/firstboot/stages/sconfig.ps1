    # Server Core of 2022 and later opens a menu at each logon.
    if (Get-Command -Name 'Set-SConfig' -ErrorAction SilentlyContinue) { Set-SConfig -AutoLaunch $false }
