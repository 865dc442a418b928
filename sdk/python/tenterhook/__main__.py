from tenterhook._program import run

run()
