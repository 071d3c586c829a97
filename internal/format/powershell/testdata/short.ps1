Get-Item 'it''s' |
  Select-Object Name # ‘quoted’
exit 3