    $sysprep = Join-Path $env:SystemRoot 'System32\Sysprep\sysprep.exe'
    $answers = '/unattend:' + (Join-Path $swdtMedia $swdtSysprepFile)
    $process = Start-Process -FilePath $sysprep -ArgumentList @('/generalize', '/oobe', '/quit', '/mode:vm', '/quiet', $answers) -PassThru
    $null = $process.Handle
    if (-not $process.WaitForExit(1800000)) { throw 'sysprep has not ended within 30 minutes' }
    if ($process.ExitCode -ne 0) { throw ('sysprep ended with ' + $process.ExitCode) }
