    # Setup keeps copies of the answer file, which has the password.
    $patterns = @(
        (Join-Path $env:SystemRoot 'Panther\*unattend*.xml'),
        (Join-Path $env:SystemRoot 'Panther\Unattend\*.xml'),
        (Join-Path $env:SystemRoot 'System32\Sysprep\*unattend*.xml'),
        ($env:SystemDrive + '\*unattend*.xml')
    )
    Get-ChildItem -Path $patterns -Force -ErrorAction SilentlyContinue | Remove-Item -Force
    $left = @(Get-ChildItem -Path $patterns -Force -ErrorAction SilentlyContinue)
    if ($left.Count -gt 0) { throw ('these copies of the answer file are left: ' + ($left.FullName -join ' ')) }
