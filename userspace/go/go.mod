module timewheel

go 1.19
