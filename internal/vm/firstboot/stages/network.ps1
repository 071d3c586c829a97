    # Windows classifies a network some seconds after it has seen it.
    for ($look = 0; $look -lt 30; $look++) {
        $profiles = @(Get-NetConnectionProfile -ErrorAction SilentlyContinue)
        if ($profiles.Count -gt 0) { break }
        Start-Sleep -Seconds 2
    }
    if ($profiles.Count -eq 0) { throw 'there is no network after a minute' }
    $profiles | Where-Object { $_.NetworkCategory -eq 'Public' } | Set-NetConnectionProfile -NetworkCategory Private
