    # The Administrator has logged on by himself; whoever sees the screen is not him.
    Start-Process -FilePath (Join-Path $env:SystemRoot 'System32\rundll32.exe') -ArgumentList 'user32.dll,LockWorkStation'
