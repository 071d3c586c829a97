    # 259: no device needed the driver. 3010: a restart is asked for.
    $pattern = Join-Path (Join-Path $swdtMedia $swdtDriverFolder) '*.inf'
    Invoke-Program 'pnputil.exe' @('/add-driver', $pattern, '/subdirs', '/install') @(0, 259, 3010)
