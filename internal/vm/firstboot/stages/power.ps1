    Invoke-Program 'powercfg.exe' @('/hibernate', 'off') @(0, 1)
    foreach ($setting in @('standby-timeout-ac', 'standby-timeout-dc', 'monitor-timeout-ac', 'monitor-timeout-dc')) {
        Invoke-Program 'powercfg.exe' @('/change', $setting, '0')
    }
