module example.org/timewheel.git/userspace/go

go 1.19
