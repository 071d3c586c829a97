    Install-Package $swdtOpenSSHFile @('ADDLOCAL=Server')
